"""Sessions: values, changes, order and decisions."""
