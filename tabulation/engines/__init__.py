"""The engines that run our expressions: DuckDB on one machine, Spark where one machine ends."""
