"""Money as documents: sums, limits, and how fast they are used up."""
