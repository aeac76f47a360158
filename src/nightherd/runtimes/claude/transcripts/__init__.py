"""TRANSCRIPTS: what Claude remembers a session by, kept safe beside what we recorded of it.

Claude writes a transcript below its own directory; `place.py` knows where. We keep a raw copy (`copy.py`)
that grows while a run goes on, and put it back when Claude's own is gone or behind (`keeping.py`). With the
SDK, entries also come as they are written (`store.py`). `untold.py`, beside this room, finds what our record has
and a transcript lacks.
"""
