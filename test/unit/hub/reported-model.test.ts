import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fetchReportedModel, withTokenizerOf } from "../../../src/hub/reported-model.ts";
import { textFile } from "./stand-in.ts";
import { ID, NAMES, NEXT_COMMIT, World } from "./world.ts";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.close());

const ask = (modelPath: string, more: { tokenizerPath?: string; vocabSize?: number } = {}) =>
  fetchReportedModel(
    { modelPath, tokenizerPath: "", vocabSize: 0, ...more },
    { environment: world.environment, pausesMs: [] },
  );

test("a folder that is here, too", async () => {
  const folder = join(world.folder, "model");
  mkdirSync(folder);
  writeFileSync(join(folder, "tokenizer.json"), "{}");
  expect([...(await ask(folder)).keys()]).toEqual(["tokenizer.json"]);
  expect(world.hub.seen).toEqual([]);
});

test("a repository", async () => {
  expect([...(await ask(ID)).keys()]).toEqual(NAMES);
});

test("a path into the engine's own cache, at its commit", async () => {
  world.hub.repositories[ID]!.revisions = { [NEXT_COMMIT]: NEXT_COMMIT };
  const path = `/root/.cache/huggingface/hub/models--org--name/snapshots/${NEXT_COMMIT}`;
  expect([...(await ask(path)).keys()]).toEqual(NAMES);
  expect(world.hub.seen[0]?.path).toBe(`/api/models/${ID}/revision/${NEXT_COMMIT}`);
});

test.each(["/models/qwen", "gpt2", "", "a/b/c"])("%j is neither: only org/name is asked for unasked", async (path) => {
  const error = await ask(path).catch((problem: Error) => problem);
  expect((error as Error).message).toContain(`${JSON.stringify(path)} is no folder here, and no repository`);
  expect(world.hub.seen).toEqual([]);
});

test("a repository with another vocabulary is another model", async () => {
  expect((await ask(ID, { vocabSize: 7 })).size).toBe(NAMES.length);
  await expect(ask(ID, { vocabSize: 8 })).rejects.toThrow("has a vocabulary of 7 tokens, the engine's model one of 8");
});

test("a tokenizer of another place takes the place of all of the model's", async () => {
  world.hub.repositories["org/tok"] = {
    commit: NEXT_COMMIT,
    files: {
      "tekken.json": textFile("tekken"),
      "config.json": textFile("other"),
      "generation_config.json": textFile("g"),
    },
  };
  const files = await ask(ID, { tokenizerPath: "org/tok" });
  const has = [...files.keys()].sort();
  expect(has).toEqual(
    [...NAMES.filter((name) => name !== "tokenizer.json"), "generation_config.json", "tekken.json"].sort(),
  );
  expect(new TextDecoder().decode(files.get("config.json"))).toBe('{"vocab_size": 7}');
});

test("nothing that decides ids stays of the other tokenizer", () => {
  const bytes = new Uint8Array(0);
  const old = [
    "tokenizer.json",
    "tekken.json",
    "a.model",
    "b.tiktoken",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
  ];
  const model = new Map([...old, "config.json"].map((name) => [name, bytes]));
  expect([...withTokenizerOf(model, new Map([["tokenizer.json", bytes]])).keys()]).toEqual([
    "config.json",
    "tokenizer.json",
  ]);
});
