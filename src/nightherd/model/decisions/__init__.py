"""What each change does, one file per noun. `model/decide.py` is the way in."""
