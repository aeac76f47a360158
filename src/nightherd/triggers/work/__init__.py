"""Trackers whose issues are work to do: each a `WorkSource`, and the only place that knows its vendor."""
