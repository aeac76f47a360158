"""Commands and options for limits."""
