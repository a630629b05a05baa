/**
 * Shows where our template engine gives something else than jinja2, for files of make_random.py:
 *   node scripts/bun.mjs run test/golden/template/compare.ts FILE...
 */
import { readFileSync } from "node:fs";
import { differences, type RandomCases } from "./suite.ts";

let bad = 0;
for (const file of process.argv.slice(2)) {
  const cases = JSON.parse(readFileSync(file, "utf8")) as RandomCases;
  for (const { template, wanted, found } of differences(cases, readFileSync(file, "utf8"))) {
    bad++;
    console.log("%s", `${file}\n  template ${JSON.stringify(template)}\n  wanted   ${wanted}\n  found    ${found}`);
  }
}
console.log(bad, "differ");
process.exit(bad === 0 ? 0 : 1);
