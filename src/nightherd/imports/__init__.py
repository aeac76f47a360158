"""FOREIGN RECORDS: what other tools left on disk, read as rows and events of ours.

In: their directories, which are only ever read. Out: rows to adopt, journals to write, and every record
that could not be read, with the reason.
Not here: recording anything (`engine/adopt.py`).
"""
