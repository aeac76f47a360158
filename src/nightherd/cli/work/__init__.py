"""Commands for issues that schedules work on."""
