"""Notifications: what people are told outside nightherd, where to, and how far that has come."""
