import { expect, test } from "bun:test";
import type { OptionTable } from "../../../src/config/option.ts";
import { printOptions } from "../../../src/config/print.ts";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const table = {
  host: { flag: "host", type: "string", default: "0.0.0.0", group: "Listener", help: "h" },
  port: { flag: "port", type: "integer", default: 30000, group: "Listener", help: "h" },
  urls: { flag: "urls", type: "strings", group: "Workers", help: "h" },
  modelPath: { flag: "model-path", type: "string", group: "Workers", help: "h" },
  apiKey: { flag: "api-key", type: "string", secret: true, group: "Workers", help: "h" },
} as const satisfies OptionTable;

test("each value with its source, secrets hidden", () => {
  const args = ["--urls", "a", "b", "--api-key", "s3cret"];
  expect(printOptions(table, resolveOptions(table, { args, env: { COLLIE_PORT: "7" } }))).toBe(
    `# Listener
host: 0.0.0.0  # default
port: 7  # COLLIE_PORT

# Workers
urls: ["a", "b"]  # --urls
# model-path:  # not set (COLLIE_MODEL_PATH)
# api-key: (hidden)  # --api-key
`,
  );
});

test("a setting of the file names the file and the line", async () => {
  const path = `${import.meta.dir}/settings.yaml`;
  const text = printOptions(table, resolveOptions(table, { args: ["--config", path], env: {} }));
  expect(text).toContain(`port: 8080  # ${path}:2\n`);
});

const odd = [
  "yes",
  "null",
  "1",
  "1e3",
  "0x1F",
  "a: b",
  "# no",
  "a #b",
  "'",
  '"',
  "\\",
  "-",
  "- a",
  "[x]",
  "{x}",
  "&a",
  "*a",
  "!t",
  "%",
  "@@x",
  "`",
  "ä\u2028",
  " x ",
  "a\nb",
  "\ttab",
  "true",
  "~",
  ".5",
  "2026-01-01",
  "|",
  ">",
  "?",
  "a:",
];

test.each(odd)("the printed text reads back as the same settings: %j", (text) => {
  const { values } = resolveOptions(table, { args: [`--host=${text}`, `--urls=${text}`, "--urls=b"], env: {} });
  const printed = printOptions(table, { ...resolveOptions(table, { args: [], env: {} }), values });
  expect(Bun.YAML.parse(printed)).toEqual({ host: text, port: 30000, urls: [text, "b"] });
});

test("the defaults of serve read back, too", () => {
  const resolved = resolveOptions(serveOptions, { args: [], env: {} });
  const parsed = Bun.YAML.parse(printOptions(serveOptions, resolved)) as Record<string, unknown>;
  for (const [property, option] of Object.entries(serveOptions)) {
    const value: unknown = resolved.values[property as keyof typeof serveOptions];
    if (value !== undefined) expect(parsed[option.flag]).toEqual(value);
    else expect(parsed).not.toHaveProperty(option.flag);
  }
});
