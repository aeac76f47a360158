"""THE INDEX: what can be looked up about jobs without reading their journals; in a database file of its own.

In: the change feed, journals. Out: outlines of jobs, hits of a search. All of it is derived: the file can be
deleted at any time.
Not here: what an outline or a text of an event is (`model/index`).
"""
