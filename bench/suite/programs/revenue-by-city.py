import csv
from collections import defaultdict
from servers.filesystem import read_text_file
from servers.sqlite import query
city = {c["id"]: c["city"] for c in query("SELECT id, city FROM customers")}
revenue = defaultdict(float)
for month in range(1, 13):
    text = read_text_file(f"{files}/orders/2026-{month:02d}.csv")["content"]
    for row in csv.DictReader(text.splitlines()):
        revenue[city[int(row["customer_id"])]] += int(row["quantity"]) * float(row["unit_price"])
", ".join(f"{c} {v:.2f}" for c, v in sorted(revenue.items(), key=lambda x: -x[1]))
