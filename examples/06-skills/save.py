from sallyport import save_skill

save_skill(name="sales-of-month", code='''
from servers.shop import list_orders

def sales_of_month(month: str) -> float:
    """Adds up the orders of a month."""
    return sum(o["amount"] for o in list_orders(month=month)["orders"])
''', tests='''
from skills.sales_of_month import sales_of_month

def test_march():
    assert sales_of_month("march") == 13.75
''')
print("saved")
