import csv
from servers.filesystem import read_text_file, write_file
from servers.sqlite import query
paid = {r["order_id"]: r["amount"] for r in query("SELECT order_id, amount FROM payments")}
unpaid = []
for month in range(1, 13):
    text = read_text_file(f"{files}/orders/2026-{month:02d}.csv")["content"]
    for row in csv.DictReader(text.splitlines()):
        order = int(row["order_id"])
        missing = round(int(row["quantity"]) * float(row["unit_price"]) - paid.get(order, 0), 2)
        if missing > 0:
            unpaid.append((order, missing))
unpaid.sort()
lines = ["order_id,missing"] + [f"{order},{missing:.2f}" for order, missing in unpaid]
write_file("{files}/out/unpaid-orders.csv", "\n".join(lines) + "\n")
f"{len(unpaid)} {sum(missing for _, missing in unpaid):.2f}"
