"""Limits while a job runs: the guard, shared budgets, logins, answers about limits."""
