"""Server-sent events: one stream of everything a page shows, and of a run."""
