"""Vectors of queries side by side: the loops of `simd` and `complete_window`, compiled once per instruction set."""
