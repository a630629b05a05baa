/**
 * Where a batch differs, when its hash does:
 *   python make_real.py FOLDER dump NAME BATCH | bun compare.ts path/to/tokenizer.json [COUNT]
 * Prints the first COUNT (10) texts, shortest first, with the library's ids and ours.
 */
import { readFileSync } from "node:fs";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";

const [file = "", count = "10"] = process.argv.slice(2);
const tokenizer = openTokenizer(await loadTokenizer(new Map([["tokenizer.json", readFileSync(file)]])));
const rows = readFileSync(0, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as [string, number[]]);
const different = rows.filter(([s, ids]) => tokenizer.encode(s).join() !== ids.join());
different.sort(([a], [b]) => a.length - b.length);
for (const [s, ids] of different.slice(0, Number(count))) {
  console.log(JSON.stringify(s), "\n  library", ids.join(), "\n  ours   ", tokenizer.encode(s).join());
}
console.log(`${different.length} of ${rows.length} differ`);
