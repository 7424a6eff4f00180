from collections import Counter
from servers.filesystem import read_multiple_files
from servers.git import git_log
text = read_multiple_files([f"{files}/logs/app-{n}.log" for n in range(1, 6)])["content"]
errors = Counter()
for line in text.splitlines():
    parts = line.split()
    if len(parts) == 6 and int(parts[4]) >= 500:
        errors[parts[3]] += 1
rows = []
for path in ["/cart", "/login", "/orders", "/pay", "/search"]:
    last = git_log(path="{repo}", filePath=f"src{path}.txt", maxCount=1)["commits"][0]
    rows.append((-errors[path], path, last["author"]))
", ".join(f"{path} {-n} {author}" for n, path, author in sorted(rows))
