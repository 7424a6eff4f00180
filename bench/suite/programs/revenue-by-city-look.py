from servers.filesystem import read_text_file
from servers.sqlite import list_tables, query
print(read_text_file("{files}/orders/2026-01.csv", head=3)["content"])
print(list_tables())
query("SELECT 1 AS n")
