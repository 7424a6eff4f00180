from servers.sqlite import query
rows = query("SELECT assignee, COUNT(*) AS n FROM tickets WHERE status = 'open' GROUP BY assignee ORDER BY n DESC, assignee LIMIT 3")
", ".join(f"{r['assignee']} {r['n']}" for r in rows)
