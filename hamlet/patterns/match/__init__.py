"""Row patterns over tables: the host evaluates expressions, the kernel matches."""
