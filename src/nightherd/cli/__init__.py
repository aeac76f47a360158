"""THE COMMAND LINE: thin commands over the engine and the views.

Standard output is data, standard error is talk. Groups load on first use, so that reading starts no event
loop and imports nothing heavy.
"""
