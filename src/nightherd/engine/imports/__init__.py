"""Imports: the records of other tools, and exported sessions."""
