"""Event streams: one simulated, four read from what publishers offer, all with the same three leading columns.

Run from the root of the repository, never installed: ``python -m datasets --help``. One module per stream;
`datasets.columns` brings events in order, `datasets.files` reads and writes files, `datasets.location` finds the real
streams. Every stream has ``time`` (int64), ``type`` (string; ``event`` in the ridesharing stream, whose ``type`` is
the request's kind) and ``seq`` (int32, the total order of the stream).
"""
