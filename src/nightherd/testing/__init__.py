"""Fakes and contract suites, for this project's tests and for users who write adapters.

Every fake passes the suite its real counterpart passes.
"""
