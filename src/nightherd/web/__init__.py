"""THE API: the fleet over HTTP, for programs and for the dashboard.

In: requests, checked at the door. Out: the same documents as the command line's, problems, and events as
they happen. Thin over engine and views.
Not here: rules about jobs, and anything that runs them.
"""
