"""Terminal output: tables, colours, progress."""
