import json, re
from servers.filesystem import read_text_file, write_file

folder = "{files}/config"
timeout = json.loads(read_text_file(f"{folder}/service.json")["content"])["timeout_ms"]
worker = read_text_file(f"{folder}/worker.json")["content"]
write_file(f"{folder}/worker.json", re.sub(r'("timeout_ms":\s*)\d+', rf"\g<1>{timeout}", worker))
json.loads(read_text_file(f"{folder}/worker.json")["content"])["timeout_ms"]
