"""Paths of sessions: reading, changing, forking and comparing them."""
