"""Journal events: the line types, messages, and what a whole journal says."""
