"""SCRIPTED: agents that play a script, with real tools."""
