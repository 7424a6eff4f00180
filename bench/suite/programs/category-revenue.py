import csv, json
from collections import Counter
from servers.filesystem import read_text_file
from servers.sqlite import execute
category = {p["sku"]: p["category"] for p in json.loads(read_text_file("{files}/products.json")["content"])}
revenue = Counter()
for month in range(1, 13):
    text = read_text_file(f"{files}/orders/2026-{month:02d}.csv")["content"]
    for row in csv.DictReader(text.splitlines()):
        revenue[row["date"][:7], category[row["sku"]]] += int(row["quantity"]) * float(row["unit_price"])
execute("CREATE TABLE category_revenue (month TEXT, category TEXT, revenue REAL)")
execute("INSERT INTO category_revenue VALUES " + ", ".join(f"('{m}', '{c}', {v:.2f})" for (m, c), v in revenue.items()))
(m, c), v = revenue.most_common(1)[0]
f"{m} {c} {v:.2f}"
