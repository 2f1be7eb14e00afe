"""What `hamlet explain` shows of a workload: views of plans and of sharing, as text, JSON and DOT."""
