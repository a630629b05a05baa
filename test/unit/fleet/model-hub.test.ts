/** Where a model's files come from: settings that name a repository, and engines that send no bundle; against a stand-in hub. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { EngineError, type EngineErrorKind, type ModelInfo } from "../../../src/engines/engine.ts";
import { ModelCatalog } from "../../../src/fleet/model-catalog.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { testCompute } from "../../support/control.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { textFile } from "../hub/stand-in.ts";
import { COMMIT, ID, World } from "../hub/world.ts";
import { modelInfo } from "./model-info.ts";

const demo = await demoModelFiles();

let world: World;
beforeEach(() => {
  world = new World();
  world.hub.repositories[ID] = {
    commit: COMMIT,
    files: Object.fromEntries([...demo].map(([name, bytes]) => [name, { bytes: new Uint8Array(bytes) }])),
  };
});
afterEach(() => world.close());

class Bundleless extends ScriptedEngine {
  asked = 0;
  constructor(private readonly kind: EngineErrorKind = "unimplemented") {
    super();
  }
  override tokenizerBundle(): Promise<never> {
    this.asked++;
    return Promise.reject(new EngineError(this.kind, "says the engine"));
  }
}

const info = (modelPath: string, more: Partial<ModelInfo> = {}): ModelInfo => modelInfo({ modelPath, ...more });

function catalog(...args: string[]): ModelCatalog {
  const { values } = resolveOptions(serveOptions, { args, env: {} });
  return new ModelCatalog(values, undefined, testCompute, { environment: world.environment, pausesMs: [] });
}

test("--model-path and --tokenizer-path may name repositories", async () => {
  world.hub.repositories["org/settings"] = {
    commit: COMMIT,
    files: { "tokenizer.json": textFile("not one"), "config.json": textFile('{"max_position_embeddings": 77}') },
  };
  const engine = new Bundleless();
  const both = catalog("--model-path", "org/settings", "--tokenizer-path", `${ID}@${COMMIT}`);
  await both.add(info("/m"), engine);
  expect(both.entries()[0]).toMatchObject({ contextLength: 77 }); // the tokenizer of one, the configuration of the other
  const single = catalog("--model-path", ID);
  await single.add(info("/m"), engine);
  expect(single.entries()[0]).toMatchObject({ contextLength: 40960 });
  expect(engine.asked).toBe(0);
  await expect(catalog("--model-path", "./nowhere").add(info("/m"), engine)).rejects.toThrow(
    "is no repository of a hub",
  );
});

test.each(["unimplemented", "invalid", "not_found", "failed"] as const)(
  "an engine without a bundle (%s): its model path is a repository",
  async (kind) => {
    const models = catalog();
    expect(await models.add(info(ID), new Bundleless(kind))).toBe("served");
    expect(models.entries()[0]).toMatchObject({ contextLength: 40960 });
  },
);

test("or a folder that is here, too", async () => {
  const folder = join(world.folder, "model");
  mkdirSync(folder);
  for (const [name, bytes] of demo) writeFileSync(join(folder, name), bytes);
  expect(await catalog().add(info(folder), new Bundleless())).toBe("served");
  expect(world.hub.seen).toEqual([]);
});

test("an engine with a bundle is believed first; one that is only not ready is asked again later", async () => {
  class Bundled extends ScriptedEngine {
    override tokenizerBundle(): Promise<never> {
      return Promise.resolve(demo as never);
    }
  }
  expect(await catalog().add(info(ID), new Bundled())).toBe("served");
  for (const kind of ["unavailable", "timeout", "overloaded", "cancelled"] as const)
    await expect(catalog().add(info(ID), new Bundleless(kind))).rejects.toThrow(/^says the engine$/);
  expect(world.hub.seen).toEqual([]);
});

test("in the end the error names all that was tried", async () => {
  const error = await catalog()
    .add(info("/models/gone"), new Bundleless())
    .catch((problem: Error) => problem);
  expect(error).toMatchObject({ name: "TokenizerError" });
  const { message } = error as Error;
  for (const part of ["says the engine", '"/models/gone" is no folder here, and no repository', "--model-path"])
    expect(message).toContain(part);
  const none = await catalog()
    .add(info("org/none"), new Bundleless())
    .catch((problem: Error) => problem);
  for (const part of ["says the engine", '"org/none"', world.hub.url, "HF_TOKEN", "--model-path"])
    expect((none as Error).message).toContain(part);
  await expect(catalog().add(info(ID, { vocabSize: 5 }), new Bundleless())).rejects.toThrow(
    "the engine's model one of 5",
  );
});

test("where the hub's cache can't be written, the gateway's own folder takes the files", async () => {
  world.environment["HF_HUB_CACHE"] = "/dev/null/hub";
  const state = join(world.folder, "state");
  const { values } = resolveOptions(serveOptions, { args: ["--model-path", ID], env: {} });
  const once = () => new ModelCatalog(values, state, testCompute, { environment: world.environment, pausesMs: [] });
  await once().add(info("/m"), new Bundleless());
  world.hub.takePaths();
  await once().add(info("/m"), new Bundleless());
  expect(world.hub.takePaths()).toEqual([`/api/models/${ID}/revision/main`]);
});
