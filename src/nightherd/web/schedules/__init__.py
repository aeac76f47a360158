"""Paths of schedules and their slots."""
