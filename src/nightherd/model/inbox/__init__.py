"""The inbox: everything that waits for a person, and what people answered."""
