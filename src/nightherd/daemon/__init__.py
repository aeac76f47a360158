"""THE PROCESS: schedules, runs and rescues jobs, serves the API, and obeys signals and files.

What belongs here: its lock and record, its signals, reloading, and what systemd wants to hear. What does not:
what happens to a job or a slot; the engine knows that, and without this process every command still works.
"""
