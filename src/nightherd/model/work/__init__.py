"""Work: issues of trackers that become jobs. Each is claimed, worked on and settled."""
