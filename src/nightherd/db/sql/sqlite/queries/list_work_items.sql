-- The issues that changed last, before an instant.
SELECT * FROM work_items WHERE changed_at < ?1 ORDER BY changed_at DESC, id DESC LIMIT ?2;
