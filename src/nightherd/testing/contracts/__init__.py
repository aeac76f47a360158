"""What every adapter of a port must do: lists of checks, each run against an adapter of your own."""
