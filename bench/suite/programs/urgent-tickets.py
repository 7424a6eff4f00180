from servers.sqlite import query
query("SELECT COUNT(*) AS n FROM tickets WHERE status = 'open' AND priority = 'urgent'")
