from servers.memory import read_graph
g = read_graph()
for kind in ("service", "person"):
    print(next(e for e in g["entities"] if e["entityType"] == kind))
print({r["relationType"]: r for r in g["relations"]})
