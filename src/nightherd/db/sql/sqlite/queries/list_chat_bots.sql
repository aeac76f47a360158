-- Every bot there ever was.
SELECT * FROM chat_bots ORDER BY id;
