"""Operators: what the kernel does with the events of one key."""
