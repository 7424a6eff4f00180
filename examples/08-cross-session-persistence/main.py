import json
from pathlib import Path
from servers.crm import list_tickets

state = Path("/workspace/seen.json")
seen = set(json.loads(state.read_text())) if state.exists() else set()
new = [t["id"] for t in list_tickets(status="open")["tickets"] if t["id"] not in seen][:50]
state.write_text(json.dumps(sorted(seen | set(new))))
print(f"{len(seen)} tickets were seen before, {len(new)} are new" + (f", from {new[0]}" if new else ""))
