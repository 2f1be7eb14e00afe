"""A row pattern as an automaton whose transitions are in order of preference, and the kernel that walks it."""
