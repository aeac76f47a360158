"""MEMORY FOR RESUMING: small mutable rows, the truth of every lifecycle.

In: changes as values, questions. Out: answers, rows, the ledger of every row image.
Not here: unbounded text in listed rows, events (`journal/`), decisions (`model/decide.py`).
"""
