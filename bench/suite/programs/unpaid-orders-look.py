from servers.sqlite import list_tables, query
print(list_tables())
query("SELECT 1 AS n")
