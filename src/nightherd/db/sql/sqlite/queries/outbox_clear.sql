DELETE FROM outbox WHERE change <= ?1;
