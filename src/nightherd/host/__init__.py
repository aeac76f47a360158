"""THE MACHINE: the clock and the dice, so that nothing else has to read them.

In: nothing. Out: time and randomness through ports.
Not here: anything about jobs.
"""
