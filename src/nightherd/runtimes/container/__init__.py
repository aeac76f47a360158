"""CONTAINERS: where the processes of an agent run when it has a container of its own.

In: a policy, and the commands that a runtime starts through its keepers. Out: the same commands, inside.
`init.py` is process 1 of the container and imports nothing but the keeper's own modules; `place.py` is the worker's
end of its socket; `engine.py` is the only module that knows the engine's API.
Not here: what an agent is asked, and what becomes of what it says.
"""
