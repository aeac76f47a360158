"""How commands carry out operations: through the daemon, or on the state directory."""
