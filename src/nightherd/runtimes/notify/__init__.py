"""Sending notifications: Apprise in a child process that may connect to public addresses only."""
