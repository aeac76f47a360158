-- Jobs that wait for a person, or failed lately, and about which nobody is asked, in the order of creation.
-- A child's job and a phase's job that failed are asked about by their parent and their run.
SELECT id FROM (
  SELECT id, number FROM jobs
  WHERE status = 'suspended' AND not_before IS NULL AND error_code IS NOT 'child_waits'
    AND NOT EXISTS (SELECT 1 FROM inbox_items WHERE job_id = jobs.id AND status = 'pending')
  UNION ALL
  SELECT id, number FROM (
    SELECT id, number, parent_job_id, node_id, worker FROM jobs WHERE status = 'failed' ORDER BY created_at DESC, number DESC LIMIT 1000
  ) AS failed
  WHERE parent_job_id IS NULL AND node_id IS NULL AND worker IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM inbox_items WHERE job_id = failed.id AND kind = 'failure')
)
ORDER BY number LIMIT ?1;
