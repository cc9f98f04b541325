"""A release every night as a task of Airflow, or of anything else that runs Python functions.

A function that raises is a task that failed: nothing behind it is run, and the last release stays in its place. Only
what could be over tomorrow is worth another try: a file that is missing is, a broken promise is not.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

POLICY = Path("/srv/clinic/policy.toml")


def release_visits(policy: Path = POLICY) -> dict[str, Any]:
    """Release what the policy says, and return numbers only: what a task returns is stored and shown to many."""
    from duckanon import job

    record = job.release(policy)
    return {
        table["name"]: {
            "released_rows": table["output"]["rows"],
            "suppressed_fraction": table["suppressed"]["fraction"],
            "promises": {promise["name"]: promise["measured"] for promise in table["promises"]},
        }
        for table in record["tables"]
    }


try:
    from airflow.sdk import dag, task
except ImportError:  # elsewhere the function is all there is
    pass
else:
    from airflow.exceptions import AirflowFailException

    @dag(schedule="30 2 * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
    def clinic_release() -> None:
        """Release the visits of the clinic."""

        @task(retries=3, retry_delay=timedelta(minutes=20))
        def release() -> dict[str, Any]:
            from duckanon.job import FileProblem

            try:
                return release_visits()
            except FileProblem:
                raise  # it may be there in twenty minutes
            except Exception as error:
                raise AirflowFailException(str(error)) from error

        release()

    clinic_release()
