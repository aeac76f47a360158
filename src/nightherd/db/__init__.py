"""DATABASE PLUMBING: SQLite through apsw, for the rooms that keep rows in it.

In: changes to carry out, queries by name. Out: committed transactions, rows.
Not here: what a change means (`model/decide.py`), which tables exist for what (`state/`).
"""
