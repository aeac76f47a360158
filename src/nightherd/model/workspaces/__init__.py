"""Workspaces: where a job works, what its files were after each turn, and what becomes of them."""
