import json
from servers.filesystem import read_text_file
products = json.loads(read_text_file("{files}/products.json")["content"])
lighting = [p for p in products if p["category"] == "lighting"]
lighting.sort(key=lambda p: (-p["weight_kg"], p["sku"]))
", ".join(p["sku"] for p in lighting[:10])
