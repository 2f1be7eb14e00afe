"""One rung of the ladder at a time: ``make micro``, or ``python -m pytest bench/micro``. No figure of the report."""
