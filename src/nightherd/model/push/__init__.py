"""Web Push: devices that subscribed to pushes, and what a push says."""
