"""Schedules as documents: lists, slots in time, and why one fires or not."""
