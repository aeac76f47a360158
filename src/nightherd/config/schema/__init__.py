"""The schema: every key a fleet or agent file may have, one file per noun, each field with its description.

In: plain values made from nodes. Out: frozen models, or pydantic's errors for `config/validate.py` to put
into words. Not here: files, places, merging. A key that is added here needs a reader or a row in
`config/not_active.py`.

Most of these modules do not postpone annotations: pydantic would compile the text of each of some 400 fields again.
"""
