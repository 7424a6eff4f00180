from servers.sqlite import list_tables
for table in list_tables():
    print(table["sql"])
