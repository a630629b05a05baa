/** Tokenizers that are added and removed over HTTP, with the registry that control keeps. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TokenizerRegistry } from "../../../../src/fleet/tokenizers.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { loadTokenizer } from "../../../../src/tokenizer/load.ts";
import { readModelFiles } from "../../../../src/tokenizer/model-files.ts";
import { testControl } from "../../../support/control.ts";
import { type Gateway, MODEL, startGateway } from "../../server/gateway.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-tokens-"));
copyFileSync(join(import.meta.dir, "../../../golden/tokenizer/small/o200k.json"), join(folder, "tokenizer.json"));
writeFileSync(join(folder, "own.jinja"), "{% for m in messages %}{{ m.content }}!{% endfor %}");

let gateway: Gateway;
/** Loading waits for this. */
let held: Promise<void> = Promise.resolve();
beforeAll(() => {
  const registry: TokenizerRegistry = new TokenizerRegistry(
    {
      async files(source) {
        await held;
        return readModelFiles(source);
      },
      tokenizer: (files) => loadTokenizer(files),
    },
    createLogger({ level: "error", json: true, write: () => {} }),
    (name) => name === MODEL || name === "demo",
    () => gateway.fleet.apply({ ...gateway.snapshot, tokenizers: registry.entries() }),
  );
  gateway = startGateway([], undefined, undefined, undefined, {
    ...testControl,
    addTokenizer: async (wanted) => registry.add(wanted),
    removeTokenizer: async (id) => registry.remove(id),
  });
});
afterAll(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(method: string, path: string, body?: unknown) {
  const response = await fetch(gateway.url + path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  expect(response.headers.get("x-request-id")).toBeTruthy();
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const add = (body: unknown) => ask("POST", "/v1/tokenizers", body);
async function settled(id: unknown): Promise<Record<string, unknown>> {
  for (;;) {
    const { status, body } = await ask("GET", `/v1/tokenizers/${id}/status`);
    expect(status).toBe(200);
    if (body["status"] !== "pending") return body;
    await Bun.sleep(2);
  }
}
const list = async () => (await ask("GET", "/v1/tokenizers")).body["tokenizers"] as Record<string, unknown>[];

describe("added tokenizers", () => {
  test("are pending, then ready, then gone", async () => {
    const gate = Promise.withResolvers<void>();
    held = gate.promise;
    const added = await add({ name: "org/small", source: folder });
    expect(added).toMatchObject({ status: 202, body: { status: "pending" } });
    const { id } = added.body;
    expect(added.body["message"]).toContain("org/small");
    const info = { id, name: "org/small", source: folder };
    expect(await list()).toContainEqual({ ...info, vocab_size: null, status: "pending" });
    expect(await ask("GET", `/v1/tokenizers/${id}/status`)).toMatchObject({ status: 200, body: { status: "pending" } });
    expect(await ask("POST", "/v1/tokenize", { model: "org/small", prompt: "a" })).toMatchObject({ status: 503 });
    gate.resolve();
    held = Promise.resolve();
    const ready = await settled(id);
    expect(ready).toMatchObject({ id, status: "completed" });
    const size = ready["vocab_size"] as number;
    expect(size).toBeGreaterThan(256);
    for (const name of [id, "org/small", "org%2Fsmall"])
      expect(await ask("GET", `/v1/tokenizers/${name}`)).toEqual({
        status: 200,
        body: { ...info, vocab_size: size, status: "completed" },
      });
    const { body } = await ask("POST", "/v1/tokenize", { model: "org/small", prompt: "Hello" });
    expect(body["count"]).toBeGreaterThan(0);
    expect(await ask("POST", "/v1/tokenize", { model: id, prompt: "Hello" })).toMatchObject({ body });
    const back = await ask("POST", "/v1/detokenize", { model: "org/small", tokens: body["tokens"] });
    expect(back.body).toEqual({ text: "Hello" });
    expect(await ask("DELETE", `/v1/tokenizers/${id}`)).toMatchObject({ status: 200, body: { success: true } });
    for (const path of [`/v1/tokenizers/${id}`, `/v1/tokenizers/${id}/status`, "/v1/tokenizers/org/small"])
      expect(await ask("GET", path)).toMatchObject({ status: 404, body: { error: { code: "tokenizer_not_found" } } });
    expect(await ask("DELETE", `/v1/tokenizers/${id}`)).toMatchObject({ status: 404 });
    expect(await ask("POST", "/v1/tokenize", { model: "org/small", prompt: "a" })).toMatchObject({ status: 404 });
  });

  test("with a chat template of their own they take messages", async () => {
    const { body } = await add({ name: "t", source: folder, chat_template_path: join(folder, "own.jinja") });
    expect(await settled(body["id"])).toMatchObject({ status: "completed" });
    const messages = [{ role: "user", content: "Hello" }];
    const chat = await ask("POST", "/v1/tokenize", { model: "t", messages });
    const text = await ask("POST", "/v1/tokenize", { model: "t", prompt: "Hello!" });
    expect(chat.body).toEqual(text.body);
    expect(await ask("DELETE", "/v1/tokenizers/t")).toMatchObject({ status: 200 });
  });

  test("one that can't be loaded says why, and can be removed by name", async () => {
    const { body } = await add({ name: "broken", source: join(folder, "nothing") });
    const failed = await settled(body["id"]);
    expect(failed["status"]).toBe("failed");
    expect(failed["message"]).toContain("nothing");
    expect(failed).not.toHaveProperty("vocab_size");
    expect(await ask("POST", "/tokenize", { model: "broken", prompt: "a" })).toMatchObject({ status: 400 });
    expect(await ask("DELETE", "/v1/tokenizers/broken")).toMatchObject({ status: 200 });
  });

  test.each([[MODEL], ["demo"], ["taken"]])("no second one of the name %s", async (name) => {
    await add({ name: "taken", source: folder });
    const { status, body } = await add({ name, source: folder });
    expect(status).toBe(409);
    expect(body["error"]).toMatchObject({ code: "tokenizer_exists", param: "name" });
    await ask("DELETE", "/v1/tokenizers/taken");
  });

  test.each([
    [{ name: "x" }, "source"],
    [{ source: "x" }, "name"],
    [{ name: "", source: "x" }, "name"],
    [{ name: "x", source: 1 }, "source"],
    [{ name: "x", source: "x", chat_template_path: 1 }, "chat_template_path"],
  ])("refuses %j", async (body, param) => {
    expect(await add(body)).toMatchObject({ status: 400, body: { error: { code: "invalid_request", param } } });
    expect(gateway.scopes.size).toBe(0);
  });
});

describe("a model's tokenizer", () => {
  test("is listed, found by its name and alias, and stays", async () => {
    const info = { id: MODEL, name: MODEL, source: "engine", vocab_size: 151_669, status: "completed" };
    expect(await list()).toEqual([info]);
    for (const name of [MODEL, "demo", "org%2Fdemo-model"]) {
      expect((await ask("GET", `/v1/tokenizers/${name}`)).body).toEqual(info);
      expect((await ask("GET", `/v1/tokenizers/${name}/status`)).body).toMatchObject({
        id: MODEL,
        status: "completed",
        vocab_size: 151_669,
      });
      const { status, body } = await ask("DELETE", `/v1/tokenizers/${name}`);
      expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining("of a model that is served")]);
    }
    expect(await list()).toEqual([info]);
  });

  test("no other is known", async () => {
    for (const path of ["x", "x/status", "%E0%A4%A", "status", "x/y/status"])
      expect(await ask("GET", `/v1/tokenizers/${path}`)).toMatchObject({ status: 404 });
    expect((await ask("PUT", "/v1/tokenizers/x", {})).status).toBe(405);
  });
});
