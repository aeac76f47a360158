"""Bots and conversations, as every surface shows them."""
