"""A PostgreSQL server for the tests that need one, with a clinic's table in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.job.conftest import database, folder
from tests.rendered.servers import Postgres, postgres_server

__all__ = ["clinic", "database", "folder", "postgres"]

PEOPLE = """
    CREATE SCHEMA clinic;
    CREATE TYPE clinic.ward AS ENUM ('east', 'west');
    CREATE TABLE clinic.people AS
        SELECT i AS id, i / 2 AS patient, 'Person ' || i AS name, 20 + 10 * (i / 2 % 4) AS age,
               (ARRAY['f', 'm'])[1 + i % 2]::varchar(6) AS sex,
               (ARRAY['flu', 'asthma', 'cold'])[1 + i / 8 % 3]::varchar(12) AS diagnosis
        FROM generate_series(0, 239) AS t(i);
    CREATE VIEW clinic.everybody AS SELECT * FROM clinic.people;
"""
"""As the people of tests/job: eight classes of thirty rows over age and sex; two rows a person, in two classes."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("adbc_driver_postgresql")
    with postgres_server() as server:
        yield server


@pytest.fixture
def clinic(postgres: Postgres) -> Postgres:
    """Make the clinic anew."""
    postgres.run(f"DROP SCHEMA IF EXISTS clinic CASCADE; {PEOPLE}")
    return postgres
