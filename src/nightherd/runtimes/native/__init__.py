"""NATIVE: our own turn loop on pydantic-ai's models, for any provider it knows.

In: a `RuntimeRequest` and the session's recorded events. Out: events, each before what it announces is done.
What the model is sent is always what the record says: a resumed run sends what the lost one would have sent.
Not here: recording, retrying, deciding what an end means. Nothing outside this room imports pydantic-ai.
"""
