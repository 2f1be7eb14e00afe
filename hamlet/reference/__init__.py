"""The kernel's recurrence on any objects that add up: for tests, and for the tables of the HAMLET paper."""
