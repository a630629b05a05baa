import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  contextLength,
  defaultSampling,
  endOfSequenceIds,
  isModelFile,
  readModelFiles,
} from "../../../src/tokenizer/model-files.ts";
import { TokenizerError } from "../../../src/tokenizer/tokenizer.ts";
import { smallTokenizer } from "./fixtures.ts";

const files = (contents: Record<string, unknown>): Map<string, Uint8Array> =>
  new Map(Object.entries(contents).map(([name, value]) => [name, Buffer.from(JSON.stringify(value))]));

describe("reading a folder", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "model-"));
    for (const name of [
      "tokenizer.json",
      "tokenizer_config.json",
      "config.json",
      "chat_template.jinja",
      "model.safetensors",
      "notes.json",
      "model.gguf",
    ]) {
      writeFileSync(join(folder, name), name);
    }
    mkdirSync(join(folder, "additional_chat_templates"));
    writeFileSync(join(folder, "additional_chat_templates", "tool_use.jinja"), "x");
    mkdirSync(join(folder, "empty"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const names = [
    "additional_chat_templates/tool_use.jinja",
    "chat_template.jinja",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
  ];

  test("takes what a tokenizer needs and leaves the weights", async () => {
    const read = await readModelFiles(folder);
    expect([...read.keys()]).toEqual(names);
    expect(Buffer.from(read.get("config.json") as Uint8Array).toString()).toBe("config.json");
  });
  test("takes the path of a tokenizer.json", async () => {
    expect([...(await readModelFiles(join(folder, "tokenizer.json"))).keys()]).toEqual(names);
  });
  test("takes the path of a file of any format, and leaves those of others then", async () => {
    const several = mkdtempSync(join(tmpdir(), "model-"));
    const all = [
      "tokenizer.json",
      "tekken.json",
      "tokenizer.model",
      "other.model",
      "x.tiktoken",
      "vocab.json",
      "merges.txt",
    ];
    for (const name of [...all, "config.json", "added_tokens.json"]) writeFileSync(join(several, name), name);
    const read = async (name: string): Promise<string[]> => [...(await readModelFiles(join(several, name))).keys()];
    expect(await read("")).toEqual([...all, "config.json", "added_tokens.json"].sort());
    expect(await read("tekken.json")).toEqual(["added_tokens.json", "config.json", "tekken.json"]);
    expect(await read("other.model")).toEqual(["added_tokens.json", "config.json", "other.model"]);
    expect(await read("x.tiktoken")).toEqual(["added_tokens.json", "config.json", "x.tiktoken"]);
    for (const name of ["vocab.json", "merges.txt"])
      expect(await read(name)).toEqual(["added_tokens.json", "config.json", "merges.txt", "vocab.json"]);
    rmSync(several, { recursive: true });
  });
  test("knows the files of a repository by their names", () => {
    const yes = ["tokenizer.json", "spiece.model", "qwen.tiktoken", "tekken.json", "merges.txt", "chat_template.jinja"];
    for (const name of [...yes, "additional_chat_templates/rag.jinja"])
      expect([name, isModelFile(name)]).toEqual([name, true]);
    const no = [
      "model.safetensors",
      "1_Pooling/config.json",
      "original/tokenizer.model",
      "x/y.jinja",
      "tokenizer.json.bak",
    ];
    for (const name of no) expect([name, isModelFile(name)]).toEqual([name, false]);
  });
  test("says what is wrong with a path", async () => {
    for (const [path, message] of [
      [join(folder, "nowhere"), "can't be read"],
      [join(folder, "empty"), "there is no tokenizer in"],
      [join(folder, "model.gguf"), "is a GGUF file"],
      [join(folder, "config.json"), "neither a folder nor a tokenizer's file"],
    ] as const) {
      const error = await readModelFiles(path).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(TokenizerError);
      expect((error as Error).message).toContain(message);
    }
  });
});

describe("a model's configuration", async () => {
  const tokenizer = await smallTokenizer("cl100k");
  const end = tokenizer.tokenId("<|end|>") as number;

  test("end-of-sequence ids come from every file", () => {
    const eos = (contents: Record<string, unknown>): number[] => endOfSequenceIds(files(contents), tokenizer);
    expect(eos({})).toEqual([]);
    expect(eos({ "config.json": { eos_token_id: 7 } })).toEqual([7]);
    expect(eos({ "config.json": { eos_token_id: null, text_config: { eos_token_id: [9, 8] } } })).toEqual([8, 9]);
    expect(eos({ "config.json": { thinker_config: { text_config: { eos_token_id: 5 } } } })).toEqual([5]);
    expect(eos({ "config.json": { eos_token_id: 7 }, "generation_config.json": { eos_token_id: [11, 7, 3] } })).toEqual(
      [3, 7, 11],
    );
    expect(eos({ "tokenizer_config.json": { eos_token: "<|end|>" } })).toEqual([end]);
    expect(eos({ "tokenizer_config.json": { eos_token: { content: "<|end|>", lstrip: false } } })).toEqual([end]);
    expect(eos({ "tokenizer_config.json": { eos_token: "<|unknown|>" } })).toEqual([]);
    expect(eos({ "config.json": { eos_token_id: ["x", -1, 1.5, 4] } })).toEqual([4]);
  });
  test("a tokenizer that stands alone ends with its </s>", async () => {
    const mistral = files({ "tokenizer.model": {} });
    const alone = await smallTokenizer("prepend");
    expect(endOfSequenceIds(mistral, alone)).toEqual([alone.tokenId("</s>") as number]);
    expect(endOfSequenceIds(files({ "tokenizer.json": {} }), alone)).toEqual([]);
    expect(endOfSequenceIds(files({ "tokenizer.model": {}, "config.json": { eos_token_id: 9 } }), alone)).toEqual([9]);
    expect(endOfSequenceIds(mistral, tokenizer)).toEqual([]);
  });
  test("the context length is the text model's", () => {
    expect(contextLength(files({ "config.json": { max_position_embeddings: 4096 } }))).toBe(4096);
    expect(contextLength(files({ "config.json": { text_config: { max_position_embeddings: 512 } } }))).toBe(512);
    expect(contextLength(files({ "config.json": {}, "tokenizer_config.json": { model_max_length: 2048 } }))).toBe(2048);
    expect(contextLength(files({ "tokenizer_config.json": { model_max_length: 1e30 } }))).toBeUndefined();
    expect(contextLength(files({}))).toBeUndefined();
  });
  test("recommended sampling counts only if the model samples", () => {
    const sampling = (config: unknown) => defaultSampling(files({ "generation_config.json": config }));
    const all = { temperature: 0.6, top_p: 0.95, top_k: 20, min_p: 0, repetition_penalty: 1.05 };
    expect(sampling({ ...all, do_sample: true, eos_token_id: 2 })).toEqual(all);
    expect(sampling({ temperature: 0.7, top_p: null })).toEqual({ temperature: 0.7 });
    expect(sampling({ ...all, do_sample: false })).toEqual({});
    expect(defaultSampling(files({}))).toEqual({});
  });
  test("a broken file is an error, not an absence", () => {
    const broken = new Map([["generation_config.json", Buffer.from("{")]]);
    expect(() => defaultSampling(broken)).toThrow("generation_config.json is not JSON");
    expect(() => contextLength(files({ "config.json": [] }))).toThrow("config.json is not a JSON object");
  });
});
