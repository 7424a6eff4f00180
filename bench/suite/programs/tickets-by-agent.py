from servers.sqlite import query
query("SELECT assignee, COUNT(*) AS n FROM tickets WHERE status = 'open' GROUP BY assignee ORDER BY n DESC, assignee LIMIT 3")
