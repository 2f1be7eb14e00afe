"""The evaluator: code generation, instances, windows, and the loop over events and deadlines."""
