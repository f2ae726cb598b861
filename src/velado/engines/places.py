"""How the places that rows lie in are told apart by their names alone, before any library that reads them is loaded."""

SERVERS = ("postgresql://", "postgres://")
"""How addresses of a PostgreSQL server begin."""
REMOTE = ("s3://", "s3a://", "s3n://", "gs://", "gcs://", "r2://")
"""How addresses begin that DuckDB's extension httpfs reads."""
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt")
ARROW = (".arrow", ".ipc", ".feather")
DATABASES = (".duckdb", ".ddb", ".db", ".db3", ".sqlite", ".sqlite3")
"""How the names of files end that may hold tables of their own."""
