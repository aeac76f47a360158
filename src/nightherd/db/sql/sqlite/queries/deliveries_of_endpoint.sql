-- An endpoint's newest deliveries.
SELECT * FROM deliveries WHERE endpoint = ?1 ORDER BY received_at DESC LIMIT ?2;
