"""THE KEEPER: a small process round every process an agent starts, which lets none of them outlive its worker.

In: a command, and signs of life from the worker. Out: how the command ended, with nothing of it left.
`guard.py` runs inside the keeper and, with `instructions.py` and `census.py`, is all that it loads; it starts
in a few milliseconds because these import next to nothing. The other modules are the worker's side.
Not here: what the command is for, and what becomes of its output.
"""
