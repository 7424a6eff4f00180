from servers.crm import list_contacts
from servers.mail import send_mail

contacts = list_contacts(city="Gozo")["contacts"]
first = contacts[0]
print(first["name"], first["email"], first["phone"], first["plan"])
sent = send_mail(to=first["email"], subject="Your plan", text=f"Dear {first['name']}, thank you.")
print(f"mail {sent['number']} went to an address at {sent['domain']}")
print(len({c["email"] for c in contacts}), "different addresses, none of which this program has seen")
