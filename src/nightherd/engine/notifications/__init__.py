"""Notifications while the fleet runs: following the ledger, queueing, and delivering in order."""
