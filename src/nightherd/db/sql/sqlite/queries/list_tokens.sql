-- Every token that was ever added, by name.
SELECT * FROM tokens ORDER BY name;
