-- Every agent that has a state.
SELECT * FROM agents ORDER BY name;
