"""THE MACHINE: its clock, its dice, its processes, so that nothing else has to ask it.

In: nothing. Out: time, randomness, who this process is and whether another still is.
Not here: anything about jobs.
"""
