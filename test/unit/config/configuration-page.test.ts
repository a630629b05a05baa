import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { configurationPage, withTables } from "../../../scripts/config-docs.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const page = readFileSync(configurationPage, "utf8");

test("the tables of the page are those of the program (else run scripts/config-docs.ts)", () => {
  expect(page).toBe(withTables(page));
});

test("every setting is on the page, once as a row", () => {
  for (const { flag } of Object.values(serveOptions)) expect(page.split(`\n| \`--${flag}\``)).toHaveLength(2);
});

test("the page's example is a valid file", () => {
  const yaml = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const keys = Object.keys(Bun.YAML.parse(yaml) as object);
  expect(keys.length).toBeGreaterThan(3);
  const flags = new Set<string>(Object.values(serveOptions).map(({ flag }) => flag));
  expect(keys.filter((key) => !flags.has(key))).toEqual([]);
});

test("a mark for an unknown command is an error", () => {
  expect(() => withTables("<!-- settings of nothing -->\n<!-- end -->")).toThrow("no command nothing");
});
