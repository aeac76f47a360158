"""Runs of workflows as documents: lists, one run, its phases, events and plan."""
