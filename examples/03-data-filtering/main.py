from servers.crm import list_contacts

contacts = list_contacts()["contacts"]
rich = [c for c in contacts if c["plan"] == "enterprise" and c["monthly_spend"] > 400]
print(f"{len(contacts)} contacts, {len(rich)} of them on the plan enterprise with more than 400 a month:")
for c in sorted(rich, key=lambda c: -c["monthly_spend"])[:3]:
    print(c["id"], c["name"], c["monthly_spend"])
