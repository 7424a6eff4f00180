import csv
from pathlib import Path
from servers.crm import list_tickets

root = Path("/workspace/tickets")
root.mkdir(exist_ok=True)
for severity in ["low", "normal", "high"]:
    rows = [t for t in list_tickets()["tickets"] if t["severity"] == severity]
    with open(root / f"{severity}.csv", "w", newline="") as f:
        out = csv.DictWriter(f, rows[0].keys())
        out.writeheader()
        out.writerows(rows)
(root / "low.csv").rename(root / "minor.csv")
(root / "normal.csv").unlink()
print(sorted(p.name for p in root.iterdir()))
