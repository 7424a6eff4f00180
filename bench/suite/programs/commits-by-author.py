from collections import Counter
from servers.git import git_log
counts = Counter(c["author"] for c in git_log(path="{repo}", maxCount=100)["commits"])
", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda x: (-x[1], x[0])))
