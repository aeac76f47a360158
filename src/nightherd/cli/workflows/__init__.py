"""Commands for workflows: what the fleet declares, and runs of it."""
