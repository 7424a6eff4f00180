from collections import Counter
from servers.git import git_blame
found = []
for name in ["cart.txt", "login.txt", "orders.txt", "pay.txt", "search.txt"]:
    lines = Counter(l["author"] for l in git_blame("src/" + name, path="{repo}")["lines"])
    author, n = min(lines.items(), key=lambda x: (-x[1], x[0]))
    found.append(f"{name} {author} {n}")
", ".join(found)
