"""Containers: what the fleet file says about one, and what is handed to the engine for it. Pure."""
