"""Commands for schedules: list, history, enable, disable, set, reset and run."""
