"""Running workflows: the agents of phases, waits that are over, and what gates show."""
