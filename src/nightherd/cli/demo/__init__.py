"""`nightherd demo`: scripted agents in a temporary repository."""
