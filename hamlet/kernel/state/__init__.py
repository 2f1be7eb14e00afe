"""What all operators work on: the state of queries and keys, bursts, rows, the calendar, and the table of operators."""
