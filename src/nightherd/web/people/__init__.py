"""Paths of what people see and answer: home, the inbox, answer links, devices."""
