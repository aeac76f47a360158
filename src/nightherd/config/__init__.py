"""CONFIGURATION: from YAML files to a resolved `Fleet`, every mistake located.

In: `nightherd.yaml`, the agent files and sub-fleets it names, `.env`, the environment given by the caller.
Out: `model.agent.Fleet`, or every problem at once with file, line and column; and the origin of each value.
Not here: anything that runs, and any value that nothing reads (see `not_active.py`).
"""
