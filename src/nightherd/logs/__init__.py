"""LOGS FOR OPERATORS: what the fleet did, a line each, in files that are rotated and never grow without end.

In: lines. Out: lines again, in order, over every file there is.
Not here: anything the engine reads. Journals and state are what happened; logs may be deleted.
"""
