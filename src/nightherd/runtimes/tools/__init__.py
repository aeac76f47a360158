"""TOOLS: what our own loops let an agent do, for real, in its working directory.

One file per tool behind the `Tool` protocol; `toolbox.py` names them all.
In: the call's input and a `ToolContext`. Out: a `ToolOutcome`; bad input and failed work are outcomes too.
Not here: events, permissions, what a runtime does with an outcome.
"""
