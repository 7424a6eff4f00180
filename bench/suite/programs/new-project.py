from servers.memory import create_entities, create_relations, open_nodes

service = "svc-mail-10"
person = next(r["to"] for r in open_nodes([service])["relations"] if r["from"] == service and "call" in r["relationType"])
create_entities([{"name": "Lighthouse", "entityType": "project", "observations": ["starts 2027-02-01"]}])
create_relations([{"from": "Lighthouse", "to": person, "relationType": "led_by"}])
person
