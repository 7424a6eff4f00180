from servers.filesystem import read_text_file
from servers.sqlite import list_tables
print(read_text_file("{files}/orders/2026-01.csv", head=3)["content"])
for t in list_tables():
    print(t["sql"])
