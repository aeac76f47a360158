"""What is shown of issues that are work."""
