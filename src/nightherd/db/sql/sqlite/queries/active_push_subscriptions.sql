-- Every device that takes pushes, the first subscribed first.
SELECT * FROM push_subscriptions WHERE status = 'active' ORDER BY created_at, id;
