"""Physical plans: which operator computes each query, which faster paths may be taken, and why no faster one is.

`paths` names the operators and features, and restricts a run to some of them; `physical` says for each query of a
compiled workload which operator serves it.
"""
