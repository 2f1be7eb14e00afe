"""Operators: how the kernel computes what a workload asks for, one package each."""
