"""A stream cut along time, its chunks computed side by side.

Where no window is open, nothing has to travel from one chunk to the next. Elsewhere a chunk of a group is a linear map
of what windows hold when it begins: the sums of a window's partial trends are a vector, one entry per state of the
automaton, and what the events of a chunk do to it is a matrix that does not depend on it. So chunks are computed side
by side, by whoever has their events, and folded in the order of time; only matrices travel.

- `coordinates`: which sums are the entries of the vector, and which queries have such maps
- `probes`: the matrix of a chunk, from queries of which one entry is 1 when the chunk begins
- `chunk`: all that a chunk makes of a class of queries: rows of windows inside it, maps of those that reach beyond
- `fold`: chunks put together, to the rows of the windows that span them
- `exchange`: what a chunk has made as bytes
- `side_by_side`: chunks on the threads of one process; `whole` and `mapped` are the two kinds that it knows
"""
