"""Connections to chat platforms: each a `ChatConnection`, and the only place that knows its vendor."""
