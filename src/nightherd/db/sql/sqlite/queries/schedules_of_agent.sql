-- An agent's schedules.
SELECT * FROM schedules WHERE agent = ?1 ORDER BY name;
