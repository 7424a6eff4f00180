from servers.notes import add_note
from servers.shop import get_customer, list_orders

known, unknown = {}, []
for name in ["Borg", "Nobody", "Abela"]:
    try:
        known[name] = get_customer(name)["city"]
    except Exception as error:
        unknown.append(name)
        print(f"{type(error).__name__}: {error}")

for month in ["january", "february", "march"]:
    total = sum(o["amount"] for o in list_orders(month=month)["orders"] if o["customer"] in known)
    if total < 10:
        print(f"{month}: {total}, too little for a note")
        continue
    count = add_note(month, f"{total} of known customers")["notes"]
    print(f"{month}: {total}, note {count}")
print("unknown:", unknown)
