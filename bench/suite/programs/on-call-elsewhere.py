from servers.memory import read_graph
g = read_graph()
notes = {e["name"]: e["observations"] for e in g["entities"]}
names = []
for r in g["relations"]:
    if r["relationType"] != "on_call" or "tier 1" not in notes[r["from"]]:
        continue
    team = next(o.removeprefix("owned by ") for o in notes[r["from"]] if o.startswith("owned by "))
    if f"is in team {team}" not in notes[r["to"]]:
        names.append(r["from"])
", ".join(sorted(names))
