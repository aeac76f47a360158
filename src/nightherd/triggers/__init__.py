"""Where work comes from beside schedules and webhooks: chat platforms and trackers, one folder for each vendor."""
