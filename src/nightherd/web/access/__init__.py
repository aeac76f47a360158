"""Who may use the API: guard of every request, logins of browsers, roles, named tokens."""
