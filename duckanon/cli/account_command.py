"""``duckanon account``: what an account of releases holds and leaves, a person forgotten, and budgets."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Describe the command."""
    description = "Show, check or change the account of releases that a policy names under [account]."
    parser = commands.add_parser("account", help="what all releases of an account leave", description=description)
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True, parser_class=type(parser))
    show = steps.add_parser("show", help="list the releases", description="List the releases of the account.")
    check = steps.add_parser(
        "check",
        help="count all releases again",
        description="Count after each release how many candidates and sensitive values remain. Exit code 1 where the "
        "joint promises of the policy are not kept.",
    )
    forget = steps.add_parser(
        "forget",
        help="make a person unrecognizable",
        description="Replace the keyed hash of a person by random bytes; the classes stay, since others share them. "
        "Refused while the person is in the source or in the last release: they would come back as somebody new.",
    )
    adopt = steps.add_parser(
        "adopt",
        help="go on with an account that has lost releases",
        description="Say which releases are known by the counter of the account, the record or the report, and are not "
        "in the account, since it was deleted, emptied, or set back to an older copy, or is another one; with "
        "--accept-loss, go on without them.",
    )
    adopt.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on: joint promises will never count what is lost, and the account and all further records say so",
    )
    for step in (show, check, forget, adopt):
        step.add_argument("policy", metavar="POLICY.toml", help="the policy that names the account and its key")
    forget.add_argument("person", metavar="PERSON", help="the person, as the source names them")
    forget.add_argument(
        "--never-again",
        action="store_true",
        help="forget them although they are in the last release of a policy, which is never used for them again",
    )
    budget = steps.add_parser(
        "budget",
        help="show or set budgets of differential privacy",
        description="Show what answers of anon.dp_table may spend and have spent; --dataset and --epsilon set it. "
        "The budget of a data set is for all consumers together; a consumer may have a budget beside it.",
    )
    budget.add_argument("account", metavar="ACCOUNT", help="the file of the account, which --dataset makes")
    budget.add_argument("--dataset", metavar="NAME", help="the data set whose budget is set")
    budget.add_argument("--consumer", metavar="NAME", help="the consumer whose budget is set")
    budget.add_argument("--epsilon", type=float, metavar="NUMBER", help="how much of epsilon all answers may spend")
    budget.add_argument("--delta", type=float, default=0.0, metavar="NUMBER", help="and of delta (default: 0)")
    budget.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on with an account that was set back to an older copy: what its lost answers spent is spent again",
    )
    for step in (parser, show, check, forget, adopt, budget):
        step.exit_code = 2
    parser.set_defaults(runner=run)


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from duckanon.cli.release_command import exit_code, visible_lines
    from duckanon.job import account_views
    from duckanon.job.errors import PolicyError
    from duckanon.job.run import connection

    def work() -> int:
        is_kept = True
        if options.step == "show":
            lines = account_views.show(options.policy)
        elif options.step == "check":
            lines, is_kept = account_views.check(options.policy)
        elif options.step == "adopt":
            lines = account_views.adopt(options.policy, accepts_loss=options.accept_loss)
        elif options.step == "budget":
            if (options.dataset is None) != (options.epsilon is None) or (options.consumer and not options.dataset):
                raise PolicyError("--dataset and --epsilon set a budget together; neither shows all budgets.")
            if options.dataset is not None:
                account_views.limit(options.account, options.dataset, options.consumer, options.epsilon, options.delta)
            if options.accept_loss:
                account_views.accept_loss(options.account)
            lines = account_views.show_budget(options.account)
        else:
            lines = account_views.forget(options.policy, options.person, connection, returns=not options.never_again)
        print(visible_lines("\n".join(lines)))
        return 0 if is_kept else 1

    return exit_code(f"duckanon account {options.step}", work)
