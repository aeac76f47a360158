"""Paths of jobs: lists, events, outlines, forks, checkpoints, landing, files."""
