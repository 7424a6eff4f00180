import csv, json
from collections import Counter
from datetime import date
from servers.filesystem import read_multiple_files
from servers.sqlite import query
segment = {r["id"]: r["segment"] for r in json.loads(query("SELECT id, segment FROM customers"))}
paid = {r["order_id"]: r["paid_on"] for r in json.loads(query("SELECT order_id, paid_on FROM payments"))}
text = read_multiple_files([f"{files}/orders/2026-{m:02d}.csv" for m in range(1, 13)])["content"]
late = Counter()
for row in csv.reader(text.splitlines()):
    if len(row) != 6 or row[0] == "order_id" or int(row[0]) not in paid:
        continue
    if (date.fromisoformat(paid[int(row[0])]) - date.fromisoformat(row[1])).days > 20:
        late[segment[int(row[2])]] += 1
", ".join(f"{s} {n}" for s, n in sorted(late.items(), key=lambda x: (-x[1], x[0])))
