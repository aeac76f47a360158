"""What people see of their own: Home, the inbox, notifications, devices, access."""
