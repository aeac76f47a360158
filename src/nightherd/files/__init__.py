"""FILES: writing them so that nobody sees half of one, reading them although somebody may be writing.

In: paths and data. Out: files replaced as a whole, data or the reason it cannot be read, as typed errors.
Not here: what the files mean.
"""
