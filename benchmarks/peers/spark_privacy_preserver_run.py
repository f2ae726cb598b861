"""One run of spark-privacy-preserver: a CSV file in, a folder of CSV files out. Run by the Python of its own environment.

`python spark_privacy_preserver_run.py rows.csv out K SENSITIVE QUASI,... CATEGORICAL,...`
"""

from __future__ import annotations

import os
import sys


def main(given: list[str]) -> None:
    """The release is written, and how many seconds the work took after the session had started is printed."""
    rows, out, k, sensitive, quasi, categorical = given
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import time

    from pyspark.sql import SparkSession
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType
    from spark_privacy_preserver.mondrian_preserver import Preserver

    builder = SparkSession.builder.master("local[2]").appName("peer")
    settings = {
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        # It gives the whole table to one pandas function: the rows must pass as one batch, however many they are.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000000",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    begun = time.perf_counter()
    names = quasi.split(",")
    frame = session.read.csv(rows, header=True, inferSchema=True).select(*names, sensitive)
    made = StructType(
        [
            *(StructField(name, StringType()) for name in names),
            StructField(sensitive, StringType()),
            StructField("count", IntegerType()),
        ]
    )
    found = Preserver.k_anonymize(frame, int(k), names, sensitive, [*categorical.split(","), sensitive], made)
    found.write.mode("overwrite").option("header", True).csv(out)
    print(f"seconds {time.perf_counter() - begun:.3f}")
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
