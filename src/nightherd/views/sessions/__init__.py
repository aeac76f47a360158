"""Sessions as documents: lists, conversations, the tree of forks, comparisons."""
