import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { enginesPage, featureTable, withEngineTables } from "../../../scripts/engines-docs.ts";
import verdicts from "../../contract/engines/dialects/verdicts.json";

const page = readFileSync(enginesPage, "utf8");

test("the tables of the page are what the tests found (else run scripts/engines-docs.ts)", () => {
  expect(page).toBe(withEngineTables(page));
});

test("every feature that is tried on the dialects is on the page", () => {
  for (const { feature } of Object.values(verdicts)) expect(page).toContain(feature);
});

const everywhere = <T>(verdict: T, but: Record<string, unknown> = {}) => ({
  ...Object.fromEntries(
    ["vllm", "sglang", "tokenspeed", "trtllm", "mlx"].flatMap((dialect) => [
      [`${dialect} 0.4.14`, verdict],
      [`${dialect} 0.4.28`, verdict],
    ]),
  ),
  ...but,
});
const tableOf = (feature: string, verdicts: Record<string, unknown>) =>
  featureTable([{ feature, verdicts: verdicts as never }]);

test("ages are told apart where they differ", () => {
  const old = { refused: "the engine of this model does not support seed" };
  expect(tableOf("seed", everywhere("works", { "tokenspeed 0.4.14": old }))).toContain(
    "| seed | works | works | 0.4.14: 400<br>0.4.28: works | works | works |",
  );
});

test("what is done otherwise has a note, one for all who do it", () => {
  const text = tableOf(
    "stop",
    everywhere("works", { "mlx 0.4.14": { differs: "so" }, "mlx 0.4.28": { differs: "so" } }),
  );
  expect(text).toContain("| stop | works | works | works | works | note 1 |");
  expect(text).toContain("\n1. so\n");
});

test("a refusal of a new kind, and a dialect of which nothing is known, are errors", () => {
  expect(() => tableOf("x", everywhere({ refused: "no" }))).toThrow("a refusal of a new kind: no");
  expect(() => tableOf("x", { "vllm 0.4.14": { refused: "the engine has no such call" } })).toThrow("sglang");
});

test("a mark for an unknown table is an error", () => {
  expect(() => withEngineTables("<!-- table of nothing -->\n<!-- end -->")).toThrow("no table of nothing");
});
