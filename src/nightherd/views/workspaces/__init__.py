"""Workspaces as documents: lists, the states of files that a diff compares, what was brought home."""
