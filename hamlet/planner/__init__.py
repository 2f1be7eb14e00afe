"""From what a query means to the integer tables that the kernel runs."""
