"""Work sources at work: issues are claimed for due slots, and their trackers are told what came of them."""
