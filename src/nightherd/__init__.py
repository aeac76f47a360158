"""nightherd runs fleets of AI agents unattended and never loses their work."""

__version__ = "0.1.0"
