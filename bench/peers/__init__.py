"""What people would use otherwise: DuckDB, a hand-written PySpark programme, Flink."""
