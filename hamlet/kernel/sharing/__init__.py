"""Bursts, graphlets and snapshots: what queries share of a Kleene sub-pattern, and the decision for each burst."""
