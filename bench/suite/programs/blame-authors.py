from collections import Counter
from servers.filesystem import list_directory
from servers.git import git_blame
found = []
for entry in sorted(list_directory("{repo}/src")["content"].splitlines()):
    name = entry.removeprefix("[FILE] ")
    lines = Counter(l["author"] for l in git_blame("src/" + name, path="{repo}")["lines"])
    author, n = min(lines.items(), key=lambda x: (-x[1], x[0]))
    found.append(f"{name} {author} {n}")
", ".join(found)
