-- Every schedule that has a state.
SELECT * FROM schedules ORDER BY agent, name;
