import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { ModelCatalog } from "../../../src/fleet/model-catalog.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { testCompute } from "../../support/control.ts";
import { END_OF_TEXT, IM_END } from "../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { modelInfo as info } from "./model-info.ts";

const files = await demoModelFiles();
const config = (...args: string[]) => resolveOptions(serveOptions, { args, env: {} }).values;

/** An engine that hands out the demo model's files, and counts how often. */
class Bundled extends ScriptedEngine {
  asked = 0;
  failures = 0;
  override async tokenizerBundle(): Promise<never> {
    this.asked++;
    await Bun.sleep(5);
    if (this.failures-- > 0) throw new Error("not yet");
    return files as never;
  }
}

test("one load a model, however many workers come at once", async () => {
  const catalog = new ModelCatalog(config("--model-alias", "short=served"), undefined, testCompute);
  const engines = [new Bundled(), new Bundled(), new Bundled()];
  const ids = await Promise.all(engines.map((engine) => catalog.add(info(), engine)));
  expect(ids).toEqual(["served", "served", "served"]);
  expect(engines.map(({ asked }) => asked)).toEqual([1, 0, 0]);
  expect(catalog.entries().map(({ id, aliases }) => [id, aliases])).toEqual([["served", ["short"]]]);
});

test("a load that failed is tried again by the next worker", async () => {
  const catalog = new ModelCatalog(config(), undefined, testCompute);
  const engine = new Bundled();
  engine.failures = 1;
  const both = await Promise.allSettled([catalog.add(info(), engine), catalog.add(info(), engine)]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(catalog.entries()).toEqual([]);
  expect(await catalog.add(info(), engine)).toBe("served");
  expect(engine.asked).toBe(2);
});

test("what the engine says of itself comes before what its files say", async () => {
  const catalog = new ModelCatalog(config(), undefined, testCompute);
  await catalog.add(info(), new Bundled());
  await catalog.add(
    info({ servedModelName: "told", contextLength: 512, eosTokenIds: [IM_END], defaultSampling: { top_k: 3 } }),
    new Bundled(),
  );
  const [byFiles, told] = catalog.entries();
  expect(byFiles).toMatchObject({
    contextLength: 40960,
    defaultSampling: { temperature: 0.6, top_k: 20, top_p: 0.95 },
  });
  expect([...(byFiles?.eosTokenIds ?? [])].sort()).toEqual([END_OF_TEXT, IM_END]);
  expect(byFiles?.quietEosTokenIds).toEqual(byFiles?.eosTokenIds as number[]);
  expect(told).toMatchObject({ contextLength: 512, defaultSampling: { top_k: 3 }, quietEosTokenIds: [IM_END] });
  expect([...(told?.eosTokenIds ?? [])].sort()).toEqual([END_OF_TEXT, IM_END]);
});

test("a model without a served name is called like its folder", async () => {
  const catalog = new ModelCatalog(config(), undefined, testCompute);
  expect(await catalog.add(info({ servedModelName: "" }), new Bundled())).toBe("qwen");
});

test("files and template of the settings take the place of the engine's", async () => {
  const folder = mkdtempSync(join(tmpdir(), "collie-catalog-"));
  try {
    const model = join(folder, "model");
    mkdirSync(model);
    for (const [name, bytes] of files) writeFileSync(join(model, name), bytes);
    const template = join(folder, "mine.jinja");
    writeFileSync(template, "mine");
    const engine = new Bundled();
    const catalog = new ModelCatalog(
      config("--model-path", model, "--chat-template", template),
      undefined,
      testCompute,
    );
    await catalog.add(info(), engine);
    expect(engine.asked).toBe(0);
    expect(catalog.entries()[0]?.template?.source).toBe("mine");

    const missing = new ModelCatalog(
      config("--model-path", model, "--chat-template", join(folder, "none")),
      undefined,
      testCompute,
    );
    const failure = await missing.add(info(), engine).catch(String);
    expect(failure).toContain("is no file, and none of harmony, ");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe("parsers and encoder", () => {
  const parsersOf = async (args: string[], more: Record<string, unknown> = {}) => {
    const folder = mkdtempSync(join(tmpdir(), "collie-catalog-"));
    try {
      for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
      if (Object.keys(more).length > 0) {
        writeFileSync(join(folder, "config.json"), JSON.stringify(more));
        writeFileSync(join(folder, "tokenizer_config.json"), "{}");
      }
      const catalog = new ModelCatalog(config("--model-path", folder, ...args), undefined, testCompute);
      await catalog.add(info(), new Bundled());
      return catalog.entries()[0];
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  test("are found from the template, or named, or left out", async () => {
    expect((await parsersOf([]))?.parsers).toEqual({ reasoning: "qwen3", tool: "qwen" });
    expect((await parsersOf(["--tool-call-parser", "llama"]))?.parsers).toEqual({ reasoning: "qwen3", tool: "llama" });
    const none = await parsersOf(["--tool-call-parser", "passthrough", "--reasoning-parser", "none"]);
    expect(none?.parsers).toEqual({ reasoning: undefined, tool: undefined });
  });

  test("one parser for both goes alone where the other one was only found", async () => {
    expect((await parsersOf(["--reasoning-parser", "harmony"]))?.parsers).toEqual({
      reasoning: "harmony",
      tool: undefined,
    });
  });

  test("an architecture with an encoder needs no template, and a template that is given goes before it", async () => {
    const gptOss = { architectures: ["GptOssForCausalLM"], model_type: "gpt_oss" };
    const entry = await parsersOf([], gptOss);
    expect(entry?.template).toEqual({ source: "", specials: {}, encoder: "harmony" });
    expect(entry?.parsers).toEqual({ reasoning: "harmony", tool: "harmony" });
    const folder = mkdtempSync(join(tmpdir(), "collie-template-"));
    writeFileSync(join(folder, "mine.jinja"), "mine");
    const own = await parsersOf(["--chat-template", join(folder, "mine.jinja")], gptOss);
    rmSync(folder, { recursive: true });
    expect(own?.template).toMatchObject({ source: "mine" });
  });
});

test("what a model's vectors are is looked up only where the engine does not generate", async () => {
  const pooling = new Map(files).set(
    "config.json",
    Buffer.from(JSON.stringify({ architectures: ["BertModel"], is_matryoshka: true })),
  );
  class Pooling extends ScriptedEngine {
    override async tokenizerBundle(): Promise<never> {
      return pooling as never;
    }
  }
  const catalog = new ModelCatalog(config(), undefined, testCompute);
  await catalog.add(info({ servedModelName: "generates" }), new Pooling());
  await catalog.add(info({ servedModelName: "embeds", isGeneration: false }), new Pooling());
  expect(catalog.entries().map(({ id, pooling: traits }) => [id, traits])).toEqual([
    ["generates", undefined],
    ["embeds", { matryoshka: "any", classes: undefined }],
  ]);
});

describe("model cards", () => {
  const load = async (...args: string[]) => {
    const catalog = new ModelCatalog(config(...args), undefined, testCompute);
    await catalog.add(info(), new Bundled());
    await catalog.add(info({ servedModelName: "other" }), new Bundled());
    return catalog
      .entries()
      .map(({ parsers, aliases, template }) => ({ ...parsers, aliases, encoder: template?.encoder }));
  };
  const card = "served:tool_parser=pythonic:reasoning_parser=base:chat_template=deepseek_v32:alias=a:alias=b";

  test("are for their model alone, and go before what its files say", async () => {
    const [found] = await load();
    const [carded, other] = await load("--model-card", card);
    const aliases = ["a", "b"];
    expect(carded).toEqual({ tool: "pythonic", reasoning: "base", aliases, encoder: "deepseek_v32" });
    expect(other).toEqual(found!);
  });
  test("what a flag sets for all models goes before a card", async () => {
    const [carded, other] = await load(
      "--model-card",
      card,
      "--tool-call-parser",
      "hermes",
      "--model-alias",
      "c=served",
    );
    expect(carded).toMatchObject({ tool: "hermes", reasoning: "base", aliases: ["c", "a", "b"] });
    expect(other).toMatchObject({ tool: "hermes" });
  });
});
