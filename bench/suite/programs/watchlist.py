from servers.sqlite import execute
execute("CREATE TABLE watchlist (customer_id INTEGER PRIMARY KEY, tickets INTEGER)")
execute("INSERT INTO watchlist SELECT customer_id, COUNT(*) FROM tickets WHERE status = 'open' AND priority IN ('high', 'urgent') GROUP BY customer_id HAVING COUNT(*) >= 2")
