"""THE WORKSHOP: what happens to a job, through ports only; one duty, one file.

In: an agent, a request, the ports. Out: rows and events, and how it ended as a value.
Not here: any driver, file, format or vendor; anything that assumes one process or one machine.
"""
