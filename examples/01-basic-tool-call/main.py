from servers.shop import get_customer

customer = get_customer("Borg")
print(f"{customer['name']} lives in {customer['city']}.")
