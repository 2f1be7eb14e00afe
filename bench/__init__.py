"""Benchmarks: one process per case, the answer checked before a time counts, every repeat kept."""
