import json
from servers.filesystem import read_text_file
products = json.loads(read_text_file("{files}/products.json")["content"])
print(len(products), products[0])
