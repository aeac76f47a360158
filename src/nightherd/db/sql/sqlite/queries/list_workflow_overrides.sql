-- Every workflow that a person has switched off or on.
SELECT * FROM workflow_overrides ORDER BY name;
