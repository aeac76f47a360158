"""TRANSCRIPTS: what Claude remembers a session by, kept safe beside what we recorded of it.

Claude writes a transcript below its own directory. We keep a raw copy that grows during a run, and put it
back when Claude's own is gone or behind (`keeping.py`). With the SDK, entries also come as they are written (`store.py`). Beside this room, `memory.py` reads what Claude will know
by a transcript, and `missing.py` finds what our journal has and a transcript lacks.
"""
