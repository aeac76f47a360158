"""`nightherd runs`: the runs of workflows."""
