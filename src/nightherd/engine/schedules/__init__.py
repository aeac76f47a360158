"""Schedules: the entries that are declared, and the scheduler that fires them."""
