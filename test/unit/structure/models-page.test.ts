import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { FAMILIES, familyTraits, modelsPage, withModelTables } from "../../../scripts/models-docs.ts";
import { parserNames } from "../../../src/parsers/names.ts";
import { ENCODER_NAMES } from "../../../src/template/encoders/native-encoder.ts";

const page = readFileSync(modelsPage, "utf8");

test("the tables of the page are those of the program (else run scripts/models-docs.ts)", () => {
  expect(page).toBe(withModelTables(page));
});

test("every name that a flag takes is on the page", () => {
  const { reasoning, tool } = parserNames();
  for (const name of [...reasoning, ...tool]) expect(page).toContain(`\`${name}\``);
});

test("every native encoder has a family, and no family goes without a parser of calls", () => {
  const traits = FAMILIES.map(familyTraits);
  const encoders = new Set(traits.map(({ encoder }) => encoder));
  expect(ENCODER_NAMES.filter((name) => !encoders.has(name))).toEqual([]);
  expect(FAMILIES.filter((_, i) => traits[i]!.tool === undefined)).toEqual([]);
});

test("a mark for an unknown table is an error", () => {
  expect(() => withModelTables("<!-- table of nothing -->\n<!-- end -->")).toThrow("no table of nothing");
});
