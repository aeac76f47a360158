"""Permissions: what an agent may do, and what a changed configuration would add."""
