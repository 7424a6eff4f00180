from collections import Counter

count = Counter(t["severity"] for t in open_tickets)  # a variable of the program before
print(dict(sorted(count.items())))
