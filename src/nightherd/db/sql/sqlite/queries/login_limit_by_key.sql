SELECT * FROM login_limits WHERE id = ?1;
