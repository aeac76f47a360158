"""Commands for the fleet file and its agents: init, config, agent."""
