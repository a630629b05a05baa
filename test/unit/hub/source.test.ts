import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modelSource, parseRepository, repositoryOfCachePath, sourceProblem } from "../../../src/hub/source.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-source-"));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ["org/name", "org/name", "main"],
  ["gpt2", "gpt2", "main"],
  ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "main"],
  ["org/name@v1.0", "org/name", "v1.0"],
  ["org/name@refs/pr/3", "org/name", "refs/pr/3"],
  ["a_b/c.d@0123456789abcdef0123456789abcdef01234567", "a_b/c.d", "0123456789abcdef0123456789abcdef01234567"],
])("%s is a repository", (text, id, revision) => {
  expect(parseRepository(text)).toEqual({ id, revision });
});

test.each([
  "",
  "/",
  "/models/qwen",
  "./qwen",
  "../qwen",
  "..",
  "a/b/c",
  "org/",
  "/name",
  "org//name",
  "org/name.git",
  "org/na--me",
  "org/na..me",
  "-org/name",
  "org/name-",
  "org/.name",
  "örg/name",
  "org/na me",
  "org\\name",
  "org/name\n",
  `org/${"n".repeat(97)}`,
  "tokenizer.json",
  "models/tokenizer.model",
  "org/name@",
  "org/name@../../x",
  "org/name@a/../b",
  "org/name@/etc",
  "org/name@a//b",
  "org/name@.hidden",
  "org/name@a/",
  "org/name@a\0b",
  "org/name@a@b",
])("%j is no repository", (text) => {
  expect(parseRepository(text)).toBeUndefined();
});

test("a path that exists is local, whatever it looks like", () => {
  const here = process.cwd();
  mkdirSync(join(folder, "org", "name"), { recursive: true });
  process.chdir(folder);
  try {
    expect(modelSource("org/name")).toEqual({ kind: "local", path: "org/name" });
    expect(modelSource("org/other")).toEqual({
      kind: "repository",
      repository: { id: "org/other", revision: "main" },
    });
  } finally {
    process.chdir(here);
  }
});

test("what is neither is told with both readings", () => {
  expect(sourceProblem("./no-such")).toMatch(/does not exist on this machine, and is no repository/);
  expect(sourceProblem("org/name")).toBeUndefined();
  expect(sourceProblem(folder)).toBeUndefined();
});

test.each([
  ["/root/.cache/huggingface/hub/models--org--na-me", "org/na-me", "main"],
  ["models--gpt2/", "gpt2", "main"],
  [
    "/x/models--org--name/snapshots/0123456789abcdef0123456789abcdef01234567",
    "org/name",
    "0123456789abcdef0123456789abcdef01234567",
  ],
])("%s was downloaded from a repository", (path, id, revision) => {
  expect(repositoryOfCachePath(path)).toEqual({ id, revision });
});

test.each(["/models/qwen", "org/name", "/x/datasets--org--name", "models--", "/x/models--org--name/snapshots/main"])(
  "%s was not",
  (path) => expect(repositoryOfCachePath(path)).toBeUndefined(),
);
