import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDemoModel } from "../../../scripts/demo-model.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { openBundle, packFiles } from "../../../src/tokenizer/file-bundle.ts";
import { contextLength, defaultSampling, endOfSequenceIds } from "../../../src/tokenizer/model-files.ts";
import { TokenizerError } from "../../../src/tokenizer/tokenizer.ts";
import { smallTokenizer } from "./fixtures.ts";

test("the demo model is a whole model folder", async () => {
  const files = await demoModelFiles();
  const config = JSON.parse(Buffer.from(files.get("tokenizer_config.json") as Uint8Array).toString()) as Record<
    string,
    unknown
  >;
  expect(config["chat_template"]).toContain("<|im_start|>");
  expect(contextLength(files)).toBe(40960);
  expect(defaultSampling(files)).toEqual({ temperature: 0.6, top_p: 0.95, top_k: 20 });
  expect(endOfSequenceIds(files, await smallTokenizer("cl100k"))).toEqual([151643, 151645]);
});

describe("a bundle", () => {
  const files = new Map([
    ["a.json", Buffer.from("a".repeat(10_000))],
    ["ä/b", Buffer.alloc(0)],
    ["c", Buffer.from([1, 2, 3])],
  ]);
  const bytes = Uint8Array.from(packFiles(files, 3));
  const readAll = async (bundle: Uint8Array<ArrayBuffer>): Promise<unknown[]> => {
    const opened = await openBundle(new Blob([bundle]));
    return Promise.all(opened.names.map(async (name) => [name, Buffer.from(await opened.read(name))]));
  };

  test("gives its files back", async () => {
    expect(await readAll(bytes)).toEqual([...files]);
    const error = await (await openBundle(new Blob([bytes]))).read("d").catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TokenizerError);
  });
  test("shows damage", async () => {
    const changed = bytes.map((b, i) => (i === bytes.length - 20 ? b ^ 255 : b));
    const wrongSize = Buffer.from(Buffer.from(bytes).toString("latin1").replace('"size":3', '"size":4'), "latin1");
    for (const bad of [
      bytes.slice(0, -1),
      bytes.slice(0, 3),
      bytes.slice(0, 20),
      changed,
      Uint8Array.from(wrongSize),
    ]) {
      expect(await readAll(bad).catch((e: unknown) => e)).toBeInstanceOf(TokenizerError);
    }
  });
});

describe("in a compiled binary", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "demo-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("the demo model loads from the binary alone and works in workers", async () => {
    const bundle = join(folder, "demo-model.bin");
    await makeDemoModel(bundle);
    const program = join(folder, "program");
    const flags =
      "--compile --minify --bytecode --format=esm --sourcemap --no-compile-autoload-dotenv --no-compile-autoload-bunfig";
    const entries = ["demo-program.ts", "encode-worker.ts"].map((name) => join(import.meta.dir, name));
    const environment = { ...process.env, BUN_BE_BUN: "1" };
    const build = Bun.spawnSync(
      [
        process.execPath,
        "build",
        ...flags.split(" "),
        "--root",
        import.meta.dir,
        ...entries,
        bundle,
        "--outfile",
        program,
      ],
      {
        env: environment,
        cwd: folder,
      },
    );
    expect(build.stderr.toString() + build.stdout.toString()).not.toContain("error:");
    expect(build.exitCode).toBe(0);
    // from an empty folder, without environment: nothing but the binary is there
    rmSync(bundle);
    mkdirSync(join(folder, "empty"));
    const run = Bun.spawnSync([program], { cwd: join(folder, "empty"), env: {} });
    expect(run.stderr.toString()).toBe("");
    const seen = JSON.parse(run.stdout.toString()) as Record<string, unknown>;
    const ids = [151644, 872, 198, 9707, 0, 151645];
    expect(seen).toMatchObject({
      names: ["tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"],
      imageFits: true,
      ids,
      workerIds: [ids],
    });
  }, 120_000);
});
