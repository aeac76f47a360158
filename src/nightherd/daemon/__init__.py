"""THE PROCESS: schedules, works, rescues and serves, and is told what to do by signals and files.

What belongs here: its lock and record, its signals, reloading, and what systemd wants to hear. What does not:
what happens to a job or a slot; the engine knows that, and without this process every command still works.
"""
