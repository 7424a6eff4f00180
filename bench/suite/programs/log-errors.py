from collections import Counter
from servers.filesystem import read_multiple_files
text = read_multiple_files([f"{files}/logs/app-{n}.log" for n in range(1, 6)])["content"]
counts = Counter()
for line in text.splitlines():
    parts = line.split()
    if len(parts) == 6 and int(parts[4]) >= 500:
        counts[parts[3]] += 1
", ".join(f"{path} {n}" for path, n in sorted(counts.items(), key=lambda x: (-x[1], x[0])))
