"""Workflows as documents, and the artifacts of their gates."""
