from servers.sqlite import list_tables
print([t["sql"] for t in list_tables() if t["name"] == "payments"])
