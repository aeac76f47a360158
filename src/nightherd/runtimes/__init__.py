"""WHERE AGENTS RUN: one file per runtime behind the `Runtime` port, and the tools our own loops offer.

In: a `RuntimeRequest`. Out: events, each before what it announces is done.
Not here: recording, retrying, deciding what an end means.
"""
