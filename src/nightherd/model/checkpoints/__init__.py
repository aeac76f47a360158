"""Checkpoints: values, `state.json`, persistence, retention and decisions."""
