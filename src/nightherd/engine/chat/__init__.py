"""Chat: people talk to agents on platforms and in a terminal.

In come messages, commands and presses of buttons from a connection (`ports/chat`). Out go rows: messages, turns
with their jobs, and posts, which the outbox sends. Nothing here knows a vendor; what a message means is decided
in `model/chat`.
"""
