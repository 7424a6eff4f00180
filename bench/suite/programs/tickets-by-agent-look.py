from servers.sqlite import list_tables
list_tables()
