"""Which slice gets which event: routing of a whole workload, placement of keys by work, cuts along time.

A *slice* is what one task of a cluster works on. Each event is sent once to every slice that owns a partition for which
some query needs it, with a mask of the classes of queries that do; a slice keeps the rows of what it owns. Whatever the
owners are, the rows are the same: owners come from statistics, and statistics may be stale.

Nothing here knows Spark. Source: Schneider, Basin, Brix, Krstić, Traytel, "Scalable online first-order monitoring"
(STTT 2021) §§4-5: event-separable slicing, and filtering what a slice does not own.
"""
