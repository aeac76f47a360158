"""Sessions: context limit, cleanup, turns added outside nightherd."""
