"""Text as the platforms write it: conversions from and to markdown, and splitting."""
