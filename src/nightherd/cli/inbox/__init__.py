"""Commands for the inbox: what waits for a person, and answers to it."""
