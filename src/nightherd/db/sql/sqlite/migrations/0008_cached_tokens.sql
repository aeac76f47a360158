-- What a checkpoint says of tokens in the cache: the limit of tokens counts every kind.
ALTER TABLE checkpoints ADD COLUMN cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN cache_read_input_tokens INTEGER NOT NULL DEFAULT 0;
