from servers.sqlite import query
query("SELECT id FROM tickets WHERE status = 'open' AND priority = 'urgent' ORDER BY created_at, id LIMIT 1")
