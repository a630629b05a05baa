import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { givenProblem, givenTemplate } from "../../../src/fleet/given-template.ts";
import { modelKind, modelTemplate } from "../../../src/fleet/model-kind.ts";
import { TokenizerRegistry } from "../../../src/fleet/tokenizers.ts";
import type { Logger } from "../../../src/telemetry/log.ts";
import { compileModelTemplate, type TemplateSource } from "../../../src/template/model-template.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { readModelFiles } from "../../../src/tokenizer/model-files.ts";
import { testCompute } from "../../support/control.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-given-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const written = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const utf8 = new TextEncoder();
const filesOf = (texts: Record<string, unknown>): ReadonlyMap<string, Uint8Array> =>
  new Map(Object.entries(texts).map(([name, value]) => [name, utf8.encode(JSON.stringify(value))]));

const NAMED = filesOf({
  "tokenizer_config.json": {
    bos_token: "<s>",
    chat_template: [
      { name: "default", template: "d" },
      { name: "rag", template: "{{ bos_token }}r" },
    ],
  },
});
const ONE = filesOf({ "tokenizer_config.json": { bos_token: "<s>", chat_template: "one" } });
const specials = { bos_token: "<s>" };

describe("a template that is named", () => {
  const given = (value: string | undefined, files = NAMED) => givenTemplate({ modelId: "m" }, files, value);

  test("none: the model's own", () => {
    expect(given(undefined)?.source).toBe("d");
    expect(given(undefined, new Map())).toBeUndefined();
  });

  test("one of the model's own", () => {
    expect(given("rag")).toEqual({ source: "{{ bos_token }}r", specials });
    expect(given("default", ONE)).toEqual({ source: "one", specials });
  });

  test("an encoder", () =>
    expect(given("deepseek_v32")).toEqual({ source: "", specials: {}, encoder: "deepseek_v32" }));

  test("files", () => {
    expect(given(written("a.jinja", "a\n"))).toEqual({ source: "a\n", specials });
    expect(given(written("a.json", '{"chat_template": "j"}'))).toEqual({ source: "j", specials });
    expect(given(written("text.json", '"t"'))?.source).toBe("t");
    const several = written(
      "several.json",
      JSON.stringify({
        chat_template: [
          { name: "default", template: "x" },
          { name: "tool_use", template: "y" },
        ],
      }),
    );
    expect(given(several)).toEqual({ source: "x", specials, named: { default: "x", tool_use: "y" } });
  });

  test("nothing of that name", () => {
    expect(() => given("tool_use")).toThrow('"tool_use" is no file, and none of default, rag, harmony, ');
    expect(() => given("constructor")).toThrow("is no file");
  });

  test("what is wrong before the model is known", () => {
    for (const right of ["rag", "harmony", join(folder, "a.jinja"), join(folder, "several.json")])
      expect([right, givenProblem(right)]).toEqual([right, undefined]);
    expect(givenProblem(join(folder, "none"))).toBe("does not exist");
    expect(givenProblem("none.jinja")).toBe("does not exist");
    expect(givenProblem(folder)).toContain("EISDIR");
    expect(givenProblem(written("broken.jinja", "a\n{% if %}"))).toContain("does not compile, line 2");
    expect(givenProblem(written("broken.json", "{"))).toContain("is not JSON");
    expect(givenProblem(written("empty.json", "{}"))).toContain("holds no chat_template");
    const part = written("part.json", '[{"name":"rag","template":"{% if %}"}]');
    expect(givenProblem(part)).toContain("the chat template 'rag' does not compile, line 1");
  });
});

describe("a model's folder", () => {
  const qwen3 = demoModelFiles();
  let count = 0;
  const found = async (texts: Record<string, string>) => {
    const path = join(folder, `model${count++}`);
    mkdirSync(join(path, "encoding"), { recursive: true });
    for (const [name, bytes] of await qwen3) writeFileSync(join(path, name), bytes);
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(path, name), text);
    const files = await readModelFiles(path);
    return modelTemplate(modelKind(path, files), files);
  };
  const config = (architecture: string) => JSON.stringify({ architectures: [architecture] });
  const V4 = config("DeepseekV4ForCausalLM");

  test.each([
    [{ "config.json": config("DeepseekV32ForCausalLM") }, "deepseek_v32"],
    [{ "config.json": V4 }, "deepseek_v4"],
    [{ "config.json": V4, "encoding/encoding_dsv4.py": "REASONING_EFFORT_MAX = 1" }, "deepseek_v4"],
    [{ "config.json": V4, "encoding/encoding_dsv4.py": "REASONING_EFFORT_PROMPTS = {}" }, "deepseek_v4_0731"],
    [{ "config.json": V4, "encoding_dsv4.py": "REASONING_EFFORT_PROMPTS = {}" }, "deepseek_v4_0731"],
    [{ "config.json": "{}", "encoding/encoding_dsv32.py": "" }, "deepseek_v32"],
    [{ "config.json": "{}", "encoding_k3.py": "" }, "kimi_k3"],
    [{ "config.json": '{"model_type":"kimi_k3"}' }, "kimi_k3"],
    [{ "encoding/other.py": "" }, undefined],
  ] as const)("%o", async (texts, encoder) => expect((await found(texts))?.encoder).toBe(encoder as never));

  test("Kimi K2.5's template gets the tools as TypeScript, that of another model does not", async () => {
    const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }];
    const shown = async (architecture: string) => {
      const template = await found({
        "config.json": config(architecture),
        "chat_template.jinja": "{{ tools_ts_str }}",
      });
      const messages = [{ role: "user", content: "a" }];
      return compileModelTemplate(template as TemplateSource).render({ messages, tools, addGenerationPrompt: true });
    };
    expect(await shown("KimiK25ForConditionalGeneration")).toContain("namespace functions {");
    expect(await shown("KimiK2ForCausalLM")).toBe("");
  });
});

describe("a tokenizer that is added", () => {
  const added = async (more: Record<string, string>, chatTemplatePath?: string) => {
    const files = new Map([
      ...(await demoModelFiles()),
      ...Object.entries(more).map(([name, text]) => [name, utf8.encode(text)] as const),
    ]);
    const told: unknown[] = [];
    const log = { error: (...what: unknown[]) => told.push(what), warn: () => {} } as unknown as Logger;
    const { promise, resolve } = Promise.withResolvers<void>();
    const sources = {
      files: async () => files,
      tokenizer: (of: ReadonlyMap<string, Uint8Array>) => testCompute.build(new Map(of), undefined),
    };
    const registry = new TokenizerRegistry(
      sources,
      log,
      () => false,
      () => {
        if (registry.entries().some(({ state }) => state.status !== "pending")) resolve();
      },
    );
    registry.add({ name: "t", source: "s", ...(chatTemplatePath !== undefined && { chatTemplatePath }) });
    await promise;
    return { state: registry.entries()[0]!.state, told };
  };
  const chat = (template: TemplateSource | undefined) => () =>
    compileModelTemplate(template as TemplateSource).render({
      messages: [{ role: "user", content: "a" }],
      addGenerationPrompt: false,
    });

  test("is there without its chat where its own template does not compile", async () => {
    const { state, told } = await added({ "chat_template.jinja": "a\n{% if %}" });
    if (state.status !== "ready") throw new Error(state.status);
    expect(state.vocabSize).toBeGreaterThan(100_000);
    expect(chat(state.template)).toThrow("cannot chat: the chat template does not compile, line 2");
    expect(told).toEqual([[expect.stringContaining("is broken"), { name: "t", problem: expect.any(String) }]]);
  });

  test("is refused with a template that was named and does not compile", async () => {
    const { state } = await added({}, written("bad.jinja", "{% if %}"));
    expect(state).toMatchObject({ status: "failed", message: expect.stringContaining("does not compile, line 1") });
  });

  test("takes a template by any of its names, and the encoder of its model", async () => {
    const { state } = await added({}, "harmony");
    expect(state).toMatchObject({ status: "ready", template: { encoder: "harmony" } });
    const own = await added({ "config.json": '{"model_type":"deepseek_v32"}' });
    expect(own.state).toMatchObject({ status: "ready", template: { encoder: "deepseek_v32" } });
  });
});
