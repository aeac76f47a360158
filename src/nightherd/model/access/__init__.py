"""Access: who may use the API and the dashboard, in which role, and from which addresses."""
