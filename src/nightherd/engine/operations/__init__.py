"""OPERATIONS: each verb once: submit, resume, fork, retry, cancel, raise limits, deliver."""
