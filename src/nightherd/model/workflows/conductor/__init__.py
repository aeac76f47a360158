"""Deciding about runs: what becomes of their nodes, and what begins next, in the transaction that ends a job."""
