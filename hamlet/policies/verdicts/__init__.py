"""Propositional policies: formula progression, automata whose states are built as they are met, Boolean verdicts."""
