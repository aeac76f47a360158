"""THE MIRROR: the same facts as files that people and other tools read. Derived, safe to delete.

In: the change feed and the journals. Out: `state.yaml`, `jobs/<id>.yaml`, `sessions/*.json`, transcripts.
Not here: anything the engine reads; edits of these files are never obeyed.
"""
