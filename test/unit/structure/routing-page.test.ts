/** docs/routing.md tells of the score as it is. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { POLICY_NAMES } from "../../../src/config/policy-names.ts";
import {
  DECODE_TOKENS,
  FULLEST,
  NEAR_SHARE,
  NEAR_TOKENS,
  PLACE_TOKENS,
  pressure,
  RECENT_MS,
  RECENT_SHARE,
  RECOMPUTE,
  RECOMPUTE_CROWDED,
  recomputeWeight,
  SATURATED_KV,
} from "../../../src/routing/score.ts";

const page = readFileSync(join(import.meta.dir, "../../../docs/routing.md"), "utf8").replaceAll(/\s+/g, " ");

test.each([
  ["what runs", `+ ${DECODE_TOKENS} x (running + 1) )`],
  ["what is computed again", `w ${RECOMPUTE}, and more where workers have queues`],
  ["in a crowd", `up to + ${RECOMPUTE_CROWDED} `],
  ["places", `+ ${PLACE_TOKENS} tokens for a whole batch`],
  ["work of late", `recent ${RECENT_SHARE * 100}% of the work that it was given in the last ${RECENT_MS / 1000} s`],
  ["near scores", `within ${NEAR_SHARE * 100}% of the prompt (and no less than ${NEAR_TOKENS} tokens`],
  ["pressure", `${Math.floor((0.15 * 1024 * pressure(FULLEST)) / 100) * 100} tokens when it is full`],
  ["saturation", `in use by ${SATURATED_KV * 100}%`],
])("%s", (_, text) => {
  expect(page).toContain(text);
});

test("the example is right", () => {
  const rows = [...page.matchAll(/queue (\d+), runs (\d+) (\d\.\d+) x (\d+) \+ (\d+) \+ (\d+) x (\d+) = (\d+)/g)].map(
    (row) => row.slice(1).map(Number),
  );
  expect(rows).toHaveLength(3);
  const mean = rows.reduce((sum, [queue = 0]) => sum + queue, 0) / rows.length;
  for (const [queue, runs = 0, weight, uncached = 0, queued, each, count, score] of rows) {
    expect([queued, each, count]).toEqual([queue, DECODE_TOKENS, runs + 1]);
    expect(weight).toBe(recomputeWeight(8000, mean));
    expect(score).toBe(recomputeWeight(8000, mean) * uncached + queue! + DECODE_TOKENS * (runs + 1));
  }
});

test("every policy is in the table", () => {
  for (const name of POLICY_NAMES) expect(page).toMatch(new RegExp(`\\| [^|]*\`${name}\`[^|]* \\|`));
});
