/** The tokenizers' command and routes in the compiled program, against golden values of the Rust library. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { Rng, string } from "../golden/tokenizer/strings.ts";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import {
  cleanEnv,
  eventually,
  root,
  startEngine,
  startGateway,
  type TestEngine,
  type TestGateway,
} from "./support/processes.ts";

interface Golden {
  readonly seed: number;
  readonly specials: readonly string[];
  readonly batches: readonly { readonly ids_sha256: string }[];
  readonly cases: readonly { readonly s: string; readonly ids: readonly number[] }[];
  readonly decode: readonly { readonly ids: readonly number[]; readonly keep: string; readonly skip?: string }[];
}

const goldens = join(root, "test", "golden", "tokenizer");
const golden = (name: string) => JSON.parse(readFileSync(join(goldens, `${name}.golden.json`), "utf8")) as Golden;
const folder = mkdtempSync(join(tmpdir(), "collie-tokens-"));
const BATCH = 1000;

beforeAll(async () => {
  collieBinary();
  mkdirSync(join(folder, "qwen3"));
  for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, "qwen3", name), bytes);
  for (const name of ["o200k", "metaspace_first"]) {
    mkdirSync(join(folder, name));
    copyFileSync(join(goldens, "small", `${name}.json`), join(folder, name, "tokenizer.json"));
  }
}, BUILD_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Lines of JSON through `collie tokenize --jsonl`. */
function filter(model: string, flags: readonly string[], values: readonly unknown[]): string[] {
  const { stdout, stderr, exitCode } = Bun.spawnSync(
    [collieBinary(), "tokenize", "--model-path", join(folder, model), "--jsonl", ...flags],
    {
      env: cleanEnv(),
      stdin: Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join("")),
    },
  );
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const lines = stdout.toString().split("\n");
  expect(lines.pop()).toBe("");
  expect(lines).toHaveLength(values.length);
  return lines;
}

describe.each(["qwen3", "o200k", "metaspace_first"])("collie tokenize --jsonl with %s", (name) => {
  const { seed, specials, batches, cases, decode } = golden(name);

  test("gives the ids of thousands of random strings", () => {
    const rng = new Rng(seed);
    const lines = filter(
      name,
      [],
      Array.from({ length: batches.length * BATCH }, () => string(rng, specials)),
    );
    for (const [i, { ids_sha256 }] of batches.entries()) {
      const text = `${lines.slice(i * BATCH, (i + 1) * BATCH).join("\n")}\n`;
      expect([i, createHash("sha256").update(text).digest("hex")]).toEqual([i, ids_sha256]);
    }
  });

  test("gives the ids of the cases, and with --decode the texts of ids", () => {
    const texts = cases.map(({ s }) => s);
    expect(filter(name, [], texts).map((line) => JSON.parse(line) as unknown)).toEqual(cases.map(({ ids }) => ids));
    const ids = decode.map((each) => each.ids);
    const decoded = (flags: string[]) => filter(name, ["--decode", ...flags], ids).map((line) => JSON.parse(line));
    expect(decoded([])).toEqual(decode.map(({ keep }) => keep));
    expect(decoded(["--skip-special-tokens"])).toEqual(decode.map(({ keep, skip = keep }) => skip));
  });
});

describe("a gateway with two threads", () => {
  let engine: TestEngine;
  let gateway: TestGateway;
  beforeAll(async () => {
    engine = await startEngine();
    gateway = await startGateway([engine], ["--threads", "2"]);
  }, BUILD_MS);
  afterAll(async () => {
    await gateway.stop();
    await engine.stop();
  });

  async function ask(method: string, path: string, body?: unknown) {
    const response = await fetch(gateway.url + path, {
      method,
      keepalive: false, // a new connection, which comes to either thread
      headers: { "content-type": "application/json", connection: "close" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  const often = (send: () => ReturnType<typeof ask>) => Promise.all(Array.from({ length: 24 }, send));

  test("a tokenizer that one of them added is known to both at once, works on both, and goes from both", async () => {
    const { cases } = golden("o200k");
    for (let round = 0; round < 3; round++) {
      const added = await ask("POST", "/v1/tokenizers", { name: "org/small", source: join(folder, "o200k") });
      expect(added).toMatchObject({ status: 202, body: { status: "pending" } });
      const path = `/v1/tokenizers/${added.body["id"]}`;
      for (const { status } of await often(() => ask("GET", path))) expect(status).toBe(200);
      while ((await ask("GET", `${path}/status`)).body["status"] === "pending") await Bun.sleep(5);
      const prompt = cases.map(({ s }) => s);
      const counted = () => often(() => ask("POST", "/v1/tokenize", { model: "org/small", prompt }));
      // the other thread hears of it a moment later
      await eventually(async () => (await counted()).every(({ status }) => status === 200));
      const again = { name: "org/small", source: join(folder, "o200k") };
      for (const { status, body } of await often(() => ask("POST", "/v1/tokenizers", again)))
        expect([status, (body["error"] as { param?: string }).param]).toEqual([409, "name"]);
      for (const { status, body } of await counted())
        expect([status, body["tokens"]]).toEqual([200, cases.map(({ ids }) => ids)]);
      expect(await ask("DELETE", path)).toMatchObject({ status: 200 });
      for (const { status } of await often(() => ask("GET", path))) expect(status).toBe(404);
    }
  });

  test("the model's own is there, with the ids of the Rust library", async () => {
    const { cases } = golden("qwen3");
    const prompt = cases.map(({ s }) => s);
    const { body } = await ask("POST", "/v1/tokenize", { model: gateway.model, prompt });
    expect(body["tokens"]).toEqual(cases.map(({ ids }) => ids));
    const list = (await ask("GET", "/v1/tokenizers")).body["tokenizers"];
    expect(list).toMatchObject([{ id: gateway.model, name: gateway.model, status: "completed" }]);
  });
});
