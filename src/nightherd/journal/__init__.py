"""MEMORY OF EVENTS: one append-only file per job, the truth of what happened and what was said.

In: events. Out: the same events in order, however the writer died. The format is docs/formats/journal.md.
Not here: anything mutable, anything a list needs.
"""
