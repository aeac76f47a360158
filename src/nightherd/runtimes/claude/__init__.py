"""CLAUDE: agents run by the user's own `claude`, a process that speaks one JSON message a line.

In: an agent and a prompt. Out: our events. `options.py` says what `claude` is started with, `translate.py`
what its messages mean, `outcome.py` what its failures are called; `cli.py` runs it.
Not here: what becomes of the events, and when a job is tried again.
"""
