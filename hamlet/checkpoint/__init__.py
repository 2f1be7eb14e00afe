"""Saved states as bytes: written, checked, and read again."""
