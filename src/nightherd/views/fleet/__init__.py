"""The fleet as documents: status, agents, configuration and deliveries of webhooks."""
