"""Proofs for the rows of policies: which sub-formula holds or fails at which time-point, and because of what."""
