-- The job that met a limit, for a job that a hook of `limits.hooks` submitted to decide about it.
ALTER TABLE jobs ADD COLUMN asked_about TEXT;
