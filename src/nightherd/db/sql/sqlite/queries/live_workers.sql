-- Workers that have not ended, by their own account.
SELECT * FROM workers WHERE status = 'alive' ORDER BY id;
