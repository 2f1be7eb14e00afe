"""The event store: single events kept for adjacent predicates, behind an ordered index or scanned."""
