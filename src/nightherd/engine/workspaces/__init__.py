"""Workspaces: the directory of a job is chosen, made, snapshotted, and removed when nothing needs it."""
