"""The PostgreSQL server of the tests of queries serves the tests of engines too."""

from tests.query.conftest import postgres_url as postgres_url
