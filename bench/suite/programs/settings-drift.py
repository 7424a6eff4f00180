import json
from servers.filesystem import read_text_file

folder = "{files}/config"
production, staging = [json.loads(read_text_file(f"{folder}/pay-{name}.json")["content"]) for name in ("production", "staging")]
", ".join(sorted(k for k in production.keys() | staging.keys() if production.get(k) != staging.get(k)))
