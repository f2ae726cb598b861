"""The PostgreSQL server of the tests of queries serves the tests of engines too; a Spark session for those of Spark."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.query.conftest import postgres_url as postgres_url


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A Spark session on this machine, one for all tests."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Small tables: what is compiled for a query would cost more than the query.
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        # Java that runs for minutes earns neither its second compiler nor its parallel collector.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.locality.wait": "0",
        "spark.shuffle.compress": "false",
        "spark.default.parallelism": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "America/Sao_Paulo",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()
