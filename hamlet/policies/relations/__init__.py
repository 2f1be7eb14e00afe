"""Finite relations over time: values as codes, periods of valuations, and the indexed store of what is kept."""
