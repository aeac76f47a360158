-- The posts that ask about an inbox item, in order.
SELECT * FROM chat_posts WHERE item_id = ?1 ORDER BY number;
