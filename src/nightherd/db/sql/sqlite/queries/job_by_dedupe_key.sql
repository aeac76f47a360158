SELECT * FROM jobs WHERE dedupe_key = ?1;
