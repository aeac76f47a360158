"""Jobs: values, lifecycle, failures, retries and decisions."""
