"""The compiled part of the engine."""
