"""Limits: values, spending, logins and decisions."""
