"""Commands for sessions: list, show, resume, fork, export, import and takeover."""
