import re
from servers.filesystem import list_directory, read_text_file

folder = "{files}/notes"
names = sorted(re.findall(r"note-\d+\.md", list_directory(folder)["content"]))
counts = {name: read_text_file(f"{folder}/{name}")["content"].count("- [ ]") for name in names}
f"{sum(counts.values())} {max(counts, key=counts.get)}"
