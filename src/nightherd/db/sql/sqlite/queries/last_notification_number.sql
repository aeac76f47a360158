-- The highest number that a notification has; 0 for none.
SELECT COALESCE(MAX(number), 0) FROM notifications;
