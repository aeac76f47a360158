"""CLAUDE: agents run by `claude`, a process that speaks one JSON message a line.

In: an agent and a prompt. Out: our events. `options.py` says what `claude` is started with, `translate.py`
what its messages mean, `outcome.py` what its failures are called, `runtime.py` how a run begins and ends;
`cli.py` and `sdk.py` are the two ways of talking to it.
Not here: what becomes of the events, and when a job is tried again.
"""
