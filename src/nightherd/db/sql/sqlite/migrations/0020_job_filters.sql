-- Lists of jobs by what people filter by, each in the order of lists.
CREATE INDEX jobs_by_schedule ON jobs (schedule, created_at, number) WHERE schedule IS NOT NULL;
CREATE INDEX jobs_by_trigger ON jobs (trigger_type, created_at, number);
-- No order of cost: the newest that cost something are looked at without reading their rows.
CREATE INDEX jobs_by_cost ON jobs (created_at, number, cost_microusd) WHERE cost_microusd > 0;
