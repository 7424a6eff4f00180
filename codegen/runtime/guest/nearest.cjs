// Suggests similar names.

// Returns the most similar one of names, "" if none is similar enough.
exports.nearest = (name, names) => {
  let best = "";
  let least = 0.5;
  for (const each of names) {
    if (folded(each) === folded(name)) return each;
    const share = distance(name.toLowerCase().slice(0, 60), each.toLowerCase().slice(0, 60)) / Math.max(name.length, each.length);
    if (share < least) [best, least] = [each, share];
  }
  return best;
};

// Returns a name without case and separators.
function folded(name) {
  return name.toLowerCase().replace(/[-_. ]/g, "");
}

// Returns the number of insertions, deletions, replacements and swaps of adjacent letters.
function distance(a, b) {
  let older = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      now[j] = Math.min(row[j] + 1, now[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) now[j] = Math.min(now[j], older[j - 2] + 1);
    }
    [older, row] = [row, now];
  }
  return row[b.length];
}
