"""Where time-points come from: MonPoly's log format, and events in columns."""
