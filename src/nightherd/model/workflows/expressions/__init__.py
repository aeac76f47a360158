"""Expressions: the small typed language of `when`, `until`, `for_each` and `${...}`. Checked at load, evaluated at run time."""
