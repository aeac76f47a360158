INSERT INTO outbox (change, at, kind, rows) VALUES (?1, ?2, ?3, ?4);
