from servers.memory import create_entities, create_relations

person = "Ada Abela-29"
create_entities([{"name": "Lighthouse", "entityType": "project", "observations": ["starts 2027-02-01"]}])
create_relations([{"from": "Lighthouse", "to": person, "relationType": "led_by"}])
person
