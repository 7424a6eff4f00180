from servers.memory import read_graph
g = read_graph()
print({e["entityType"]: e for e in g["entities"]})
print({r["relationType"]: r for r in g["relations"]})
