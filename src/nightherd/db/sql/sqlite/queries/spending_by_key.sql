SELECT * FROM spending WHERE id = ?1;
