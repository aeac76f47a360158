"""Jobs as documents: lists, one job, its events, outline, checkpoints and evidence of life."""
