from servers.crm import list_tickets

open_tickets = list_tickets(status="open")["tickets"]
print(len(open_tickets), "open tickets are in a variable")
