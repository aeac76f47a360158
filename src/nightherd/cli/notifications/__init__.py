"""Commands for notifications: what was sent, what is to be, and whether targets work."""
