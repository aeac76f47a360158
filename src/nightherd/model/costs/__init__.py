"""Costs: what was used when, by which model and for what; and how long limits last at that rate."""
