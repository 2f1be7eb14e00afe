"""A specification is checked: names, types, pacing, conditions and the order of a step; every mistake at once."""
