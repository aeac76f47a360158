"""WIRING: the one room that chooses concrete adapters.

Its functions import what they open when they are called: a command that only reads never loads what writing, running
or serving needs. Types are checked all the way.
"""
