"""Paths of operators: checks, logs, notifications, retention, reloading, metrics."""
