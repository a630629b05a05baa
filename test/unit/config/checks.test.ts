import { expect, test } from "bun:test";
import { emptyCaches } from "../../../src/config/checks.ts";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const problems = (...args: string[]): string[] =>
  emptyCaches(resolveOptions(serveOptions, { args, env: {} }).values).map((line) => line.split(":")[0]!);

test("a cache that is on needs room", () => {
  const entries = ["--tokenizer-cache-l0-max-entries", "0"];
  const bytes = ["--tokenizer-cache-l1-max-memory", "0"];
  expect(problems()).toEqual([]);
  expect(problems(...entries)).toEqual(["--tokenizer-cache-l0-max-entries"]);
  expect(problems(...bytes)).toEqual(["--tokenizer-cache-l1-max-memory"]);
  expect(problems(...bytes, "--no-tokenizer-cache-enable-l1")).toEqual(["--tokenizer-cache-l1-max-memory"]);
  expect(problems(...entries, ...bytes).length).toBe(2);
  expect(problems(...entries, "--tokenizer-cache-enable-l0=false")).toEqual([]);
  expect(problems(...bytes, "--no-tokenizer-cache-enable-l0", "--no-tokenizer-cache-enable-l1")).toEqual([]);
});
