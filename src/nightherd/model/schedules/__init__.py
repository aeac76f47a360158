"""Schedules: rules, due times, slots and decisions."""
