"""The inbox while jobs run: asking people about calls, and what their answers do."""
