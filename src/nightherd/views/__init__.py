"""THE WINDOWS: read-only answers, shared by every surface.

In: a question and the reading ports. Out: values ready to show, lists that never read texts.
Not here: writing, running, asynchrony, formatting for one surface.
"""
