"""Operators over changes: what few events change is worked out row by row, where all else stands still."""
