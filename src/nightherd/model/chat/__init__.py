"""Chat: people who talk to agents on Slack, on Discord or in a terminal."""
