"""``duckanon account``: what an account of releases holds and leaves, a person forgotten, and budgets."""

from __future__ import annotations

import argparse


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
