"""Which cities wait longest? The contacts of the worst city get a mail, and the result a note."""
from collections import defaultdict
from servers.crm import get_contact, list_tickets
from servers.mail import send_mail
from servers.notes import add_note

late = [t for t in list_tickets(status="open")["tickets"] if t["severity"] == "high" and t["hours_open"] > 60]
contacts = {i: get_contact(i) for i in sorted({t["contact"] for t in late})}
waiting = defaultdict(int)
for t in late:
    waiting[contacts[t["contact"]]["city"]] += t["hours_open"]
worst = max(waiting, key=waiting.get)
told = [send_mail(to=c["email"], subject="Your tickets", text="We work on them.") for c in contacts.values() if c["city"] == worst]
add_note("longest waiting", f"{worst}: {waiting[worst]} h")
print(f"{len(late)} late tickets of {len(contacts)} contacts; {worst} waits {waiting[worst]} h; {len(told)} mails")
