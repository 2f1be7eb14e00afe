"""From a rewritten formula to operators: what binds comes first; and the plan in words."""
