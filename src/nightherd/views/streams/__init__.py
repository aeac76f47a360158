"""The stream of the API as documents: its cursor and its rows."""
