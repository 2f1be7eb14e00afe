"""Queries that ask about the rows of other queries: executors in layers over one stream.

The name of a query is an event type for the other queries of its workload; each of its rows is an event at the end of
its window. Queries that ask about the same ones form a *unit*, which has an executor, and a stream of its own: the
input, and the rows of those queries, merged by time. Units are run one after the other whenever time advances, so that
a row is there before anything that comes after it.
"""
