"""Agents and fleets as the fleet file declares them."""
