"""FOREIGN RECORDS: what other tools left on disk, read as rows and events of ours.

In: their directories, which are only ever read. Out: jobs with their events, sessions and schedules,
transcripts and what they come to, raw copies of these, and every record that could not be read, with the
reason. Not here: deciding what is taken over and recording it (`engine/imports/context.py`).
"""
