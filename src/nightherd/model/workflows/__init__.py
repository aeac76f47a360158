"""Workflows: declared graphs of phases, their expressions, and what follows when a phase of a run ends."""
