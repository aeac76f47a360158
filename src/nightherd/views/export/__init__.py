"""A session as a file for others: our own document, a transcript for `claude`, a page to read.

In: a session, its conversation and the journals. Out: text, a piece at a time, so that no conversation is too
long. Not here: writing files, reading them back.
"""
