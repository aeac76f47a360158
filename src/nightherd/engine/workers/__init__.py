"""Workers: claiming jobs, leases, rescue."""
