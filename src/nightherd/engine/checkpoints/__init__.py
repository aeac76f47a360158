"""Checkpoints, `state.json` and retention."""
