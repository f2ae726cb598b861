"""Engines: where the rows are. A source answers a few questions by counting, and never hands its rows over.

`RowSource` says what every engine can do: distinct values of a column with their counts, distinct tuples with theirs, a
sample of stated size, and writing a recoded table. `duckdb_source` answers for CSV and Parquet files, folders of them and Arrow tables,
`attached_database` for tables of DuckDB and SQLite files and `remote_files` for s3:// addresses; `open_source` opens whatever a person names.
`postgres_source` lets a server answer for its own table, `spark_source` answers for a Spark data frame and `spark_files` for files that Spark
reads. Cells are never compared as an engine writes them: each column's
distinct values come here once, are read and coded by `velado.data` as every table is, and go back as a list of values with
codes. So one set of rules for spellings, blanks and decimals holds wherever the rows lie.
"""
