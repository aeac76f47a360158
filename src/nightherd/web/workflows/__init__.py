"""Paths of workflows and their runs."""
