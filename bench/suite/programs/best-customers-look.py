from servers.sqlite import query
query("SELECT id, name FROM customers LIMIT 1")
