"""The execution of one job, from taking it to settling it."""
