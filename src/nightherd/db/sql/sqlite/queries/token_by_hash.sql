-- The token with that hash that is accepted.
SELECT * FROM tokens WHERE hash = ?1 AND revoked_at IS NULL;
