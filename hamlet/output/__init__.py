"""Rows of closed windows: their values, their order, and the forms in which they are delivered."""
