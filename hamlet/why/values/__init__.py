"""Evidence for the rows of specifications: the values that a value was computed from, back to the inputs."""
