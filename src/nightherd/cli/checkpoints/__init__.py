"""Commands for checkpoints and their retention."""
