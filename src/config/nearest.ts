const plain = (name: string) => name.toLowerCase().replaceAll("_", "-");

/** Insertions, deletions, substitutions and swaps of neighbours that turn one text into the other. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, beforeLast[j - 2]! + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}

/** The known name that a misspelt one most likely means; undefined when none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = plain(name);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(wanted.length / 4)) + 1;
  for (const candidate of known) {
    const cost = distance(wanted, plain(candidate));
    if (cost < least && cost < candidate.length) {
      best = candidate;
      least = cost;
    }
  }
  return best;
}
