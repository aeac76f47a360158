"""Hooks that leave the process: commands under a keeper, requests over HTTP.

In: a hook and the job's context. Out: what it came to, as a value.
Not here: when a hook is due, and what its result means.
"""
