-- What was used on a day for an agent's jobs by jobs below them, of other agents: it counts for that agent and its
-- schedule, and is in the row of the agent that used it for the fleet.
ALTER TABLE spending ADD COLUMN below_cost_microusd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN below_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN below_turns INTEGER NOT NULL DEFAULT 0;
