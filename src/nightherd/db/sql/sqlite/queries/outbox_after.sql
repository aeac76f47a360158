SELECT change, at, kind, rows FROM outbox WHERE change > ?1 ORDER BY change;
