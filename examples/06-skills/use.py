from skills.sales_of_month import sales_of_month

print({m: sales_of_month(m) for m in ["january", "february", "march"]})
