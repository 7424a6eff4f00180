from servers.memory import open_nodes

service = "svc-cart-16"
relations = [r for r in open_nodes([service])["relations"] if r["from"] == service]
{"relations": relations, "entities": open_nodes([r["to"] for r in relations])["entities"]}
