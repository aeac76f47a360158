"""FILES: writes that readers see whole or not at all, and reads while another process writes.

In: paths and data. Out: files replaced as a whole, data or the reason it cannot be read, as typed errors.
Not here: what the files mean.
"""
