import csv
from servers.filesystem import read_text_file
from servers.sqlite import execute
execute("CREATE TABLE load_orders (order_id INTEGER, date TEXT, customer_id INTEGER, sku TEXT, quantity INTEGER, unit_price REAL)")
count = quantity = 0
for month in range(1, 13):
    rows = list(csv.DictReader(read_text_file(f"{files}/orders/2026-{month:02d}.csv")["content"].splitlines()))
    count += len(rows)
    quantity += sum(int(r["quantity"]) for r in rows)
    values = ",".join(f"({r['order_id']},'{r['date']}',{r['customer_id']},'{r['sku']}',{r['quantity']},{r['unit_price']})" for r in rows)
    execute(f"INSERT INTO load_orders VALUES {values}")
f"{count} {quantity}"
