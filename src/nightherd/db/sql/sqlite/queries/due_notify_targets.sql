-- Targets for which something is to be sent by an instant and which are not left alone then.
SELECT id FROM notify_targets
WHERE is_active = 1 AND (paused_until IS NULL OR paused_until <= ?1)
  AND EXISTS (SELECT 1 FROM notifications
    WHERE target = notify_targets.id AND due_at <= ?1 AND status IN ('pending', 'sending'));
