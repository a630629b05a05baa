/** Message batches over HTTP, with a history in memory. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { newBatch } from "../../../../src/apis/message-batches/object.ts";
import { EngineError } from "../../../../src/engines/engine.ts";
import { batch, batchPage, batchResult, check, deletedBatch, error } from "../../../support/schemas/messages.ts";
import { decodeAll, encode, IM_END } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { post, user } from "../messages/asking.ts";

let gateway: Gateway;
/** One that has stopped to work, but whose store the next one uses. */
let former: Gateway | undefined;
let engine: ScriptedEngine;
let held: ScriptedCall[];
/** Tries of requests that ask for a busy engine. */
let busy: number;
/** When one asked that is to come again after two seconds. */
let later: number[];

const answer = (call: ScriptedCall, text: string) =>
  call
    .chunk([...encode(text), IM_END])
    .finish({ completionTokens: 2 })
    .end();

beforeEach(() => {
  held = [];
  busy = 0;
  later = [];
  engine = new ScriptedEngine((call) => {
    const prompt = decodeAll(Array.from(call.request.tokenIds));
    queueMicrotask(() => {
      if (prompt.includes("hold")) held.push(call);
      else if (prompt.includes("fail")) call.end(new EngineError("failed", "no"));
      else if (prompt.includes("busy") && busy++ < 2) call.end(new EngineError("overloaded", "later"));
      else if (prompt.includes("later") && later.push(performance.now()) === 1)
        call.end(new EngineError("overloaded", "full", { retryAfterMs: 2000 }));
      else answer(call, "Yes.");
    });
  });
  gateway = startGateway([], engine, [modelEntry()]);
});
afterEach(async () => {
  await gateway.stop();
  await former?.stop();
  former = undefined;
});

function goOn(history: Gateway["history"]): void {
  former = gateway;
  gateway = startGateway([], engine, [modelEntry()], 10, undefined, history);
}

type Json = Record<string, unknown>;
const params = (text: string, more: object = {}) => ({
  model: MODEL,
  max_tokens: 100,
  messages: [user(text)],
  ...more,
});
const requests = (...texts: string[]) => ({
  requests: texts.map((text, i) => ({ custom_id: `r-${i}`, params: params(text) })),
});

async function send(method: string, path = "", body?: object): Promise<{ status: number; body: Json }> {
  const response =
    body === undefined
      ? await fetch(`${gateway.url}/v1/messages/batches${path}`, { method })
      : await post(gateway, body, `/v1/messages/batches${path}`);
  expect(response.headers.get("request-id")).not.toBeNull();
  return { status: response.status, body: (await response.json()) as Json };
}

async function create(body: object): Promise<Json> {
  const { status, body: made } = await send("POST", "", body);
  if (status !== 200) throw new Error(JSON.stringify(made));
  check(batch, made, "batch");
  return made;
}

async function ended(id: unknown): Promise<Json> {
  for (let i = 0; i < 2000; i++) {
    const { body } = await send("GET", `/${id}`);
    check(batch, body, "batch");
    if (body["processing_status"] === "ended") return body;
    await Bun.sleep(10);
  }
  throw new Error("the batch does not end");
}

async function results(of: Json): Promise<Map<string, Json>> {
  const response = await fetch(String(of["results_url"]));
  expect(response.headers.get("content-type")).toBe("application/x-jsonl");
  const lines = (await response.text()).split("\n");
  expect(lines.pop()).toBe("");
  return new Map(
    lines.map((line) => {
      const entry = JSON.parse(line) as { custom_id: string; result: Json };
      check(batchResult, entry, "result");
      return [entry.custom_id, entry.result];
    }),
  );
}
const types = (found: Map<string, Json>) => [...found].map(([id, { type }]) => `${id} ${type}`).sort();
const errorOf = (found: Map<string, Json>, id: string) =>
  (found.get(id)!["error"] as { error: { type: string; message: string } }).error;

test("each request comes to a result of its own", async () => {
  const bad = [
    { custom_id: "no-tokens", params: { model: MODEL, messages: [user("a")] } },
    { custom_id: "no-model", params: params("a", { model: "unknown" }) },
    { custom_id: "stream", params: params("a", { stream: true }) },
  ];
  const { requests: good } = requests("a", "fail", ...Array<string>(40).fill("b"));
  const made = await create({ requests: [...good, ...bad] });
  expect([made["processing_status"], made["request_counts"]]).toEqual([
    "in_progress",
    { processing: 45, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
  ]);
  const done = await ended(made["id"]);
  expect(done["request_counts"]).toEqual({ processing: 0, succeeded: 41, errored: 4, canceled: 0, expired: 0 });
  const found = await results(done);
  expect(found.size).toBe(45);
  const [text] = (found.get("r-0")!["message"] as { content: Json[] }).content;
  expect(text).toEqual({ type: "text", text: "Yes.", citations: null });
  expect(errorOf(found, "no-tokens").message).toContain("max_tokens");
  expect(errorOf(found, "no-model").type).toBe("not_found_error");
  expect(errorOf(found, "r-1").type).toBe("api_error");
  await gateway.runs.get(String(made["id"]))?.done;
  expect(gateway.scopes.size).toBe(0);
});

test("a request that the engine is too busy for is asked again", async () => {
  const done = await ended((await create(requests("busy")))["id"]);
  expect([done["request_counts"], busy]).toEqual([
    { processing: 0, succeeded: 1, errored: 0, canceled: 0, expired: 0 },
    3,
  ]);
});

test("and not before the engine says", async () => {
  const done = await ended((await create(requests("later")))["id"]);
  expect(done["request_counts"]).toMatchObject({ succeeded: 1 });
  expect(later).toHaveLength(2);
  expect(later[1]! - later[0]!).toBeGreaterThan(1990);
});

/** As many are with the engine, and no more. */
async function holds(count: number): Promise<void> {
  for (let i = 0; i < 1000 && held.length < count; i++) await Bun.sleep(10);
  await Bun.sleep(30);
  expect(held).toHaveLength(count);
}

test("at most 16 requests of a batch are worked on at a time", async () => {
  const made = await create(requests(...Array<string>(20).fill("hold")));
  await holds(16);
  for (let i = 0; i < 20; i++) {
    while (held[i] === undefined) await Bun.sleep(1);
    answer(held[i]!, "Yes.");
  }
  expect((await results(await ended(made["id"]))).size).toBe(20);
});

test("numbers of a request are those that the client wrote", async () => {
  const body = JSON.stringify({
    requests: [{ custom_id: "a", params: params("a", { tools: [{ name: "t", input_schema: { n: "N" } }] }) }],
  }).replace('"N"', "12345678901234567890");
  const response = await fetch(`${gateway.url}/v1/messages/batches`, { method: "POST", body });
  await ended(((await response.json()) as Json)["id"]);
  expect(decodeAll(Array.from(engine.calls[0]!.request.tokenIds))).toContain("12345678901234567890");
});

describe("cancel", () => {
  test("ends what is under way, and what has not begun", async () => {
    const made = await create(requests("a", ...Array<string>(30).fill("hold")));
    await holds(16);
    const { body: asked } = await send("POST", `/${made["id"]}/cancel`, {});
    check(batch, asked);
    expect(asked["processing_status"]).toBe("canceling");
    const done = await ended(made["id"]);
    expect(done["cancel_initiated_at"]).toBe(asked["cancel_initiated_at"] as string);
    expect(done["request_counts"]).toMatchObject({ succeeded: 1, canceled: 30 });
    expect(types(await results(done)).filter((line) => line.endsWith("canceled"))).toHaveLength(30);
    expect(held.every(({ cancelled }) => cancelled === 1)).toBe(true);
    expect((await send("POST", `/${made["id"]}/cancel`, {})).body).toEqual(done);
  });

  test("by another gateway is seen", async () => {
    const made = await create(requests("hold"));
    await holds(1);
    const other = startGateway([], engine, [modelEntry()], 10, undefined, gateway.history);
    await fetch(`${other.url}/v1/messages/batches/${made["id"]}/cancel`, { method: "POST" });
    expect((await ended(made["id"]))["request_counts"]).toMatchObject({ canceled: 1 });
    await other.stop();
  });
});

test("lists have the newest first, in pages", async () => {
  const ids: unknown[] = [];
  for (let i = 0; i < 5; i++) {
    ids.unshift((await create(requests("a")))["id"]);
    await Bun.sleep(2);
  }
  const { body: first } = await send("GET", "?limit=2&beta=true");
  check(batchPage, first);
  expect([
    (first["data"] as Json[]).map(({ id }) => id),
    first["has_more"],
    first["first_id"],
    first["last_id"],
  ]).toEqual([ids.slice(0, 2), true, ids[0], ids[1]]);
  const { body: rest } = await send("GET", `?limit=10&after_id=${ids[1]}`);
  expect([(rest["data"] as Json[]).map(({ id }) => id), rest["has_more"]]).toEqual([ids.slice(2), false]);
  const { body: before } = await send("GET", `?limit=2&before_id=${ids[4]}`);
  expect([(before["data"] as Json[]).map(({ id }) => id), before["has_more"]]).toEqual([ids.slice(2, 4), true]);
  expect((await send("GET", "?limit=0")).status).toBe(400);
  for (const param of ["after_id", "before_id"]) {
    const unknown = await send("GET", `?${param}=unknown`);
    expect(unknown.status).toBe(400);
    expect(unknown.body).toMatchObject({ error: { message: `${param} names nothing in this list` } });
  }
  for (const id of ids) await ended(id);
});

test("an ended batch can be deleted, and only that", async () => {
  const made = await create(requests("hold"));
  expect((await send("DELETE", `/${made["id"]}`)).status).toBe(400);
  expect((await send("GET", `/${made["id"]}/results`)).status).toBe(400);
  await holds(1);
  answer(held[0]!, "Yes.");
  await ended(made["id"]);
  const { body } = await send("DELETE", `/${made["id"]}`);
  check(deletedBatch, body);
  for (const [method, path] of [
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/results"],
  ] as const) {
    const gone = await send(method, `/${made["id"]}${path}`);
    check(error, gone.body);
    expect([gone.status, (gone.body["error"] as Json)["type"]]).toEqual([404, "not_found_error"]);
  }
});

test.each<[string, object]>([
  ["no requests", { requests: [] }],
  ["no list", { requests: "a" }],
  ["two of one id", { requests: [0, 1].map(() => ({ custom_id: "a", params: params("a") })) }],
  ["an id of strange characters", { requests: [{ custom_id: "a b", params: params("a") }] }],
])("refused: %s", async (_, body) => {
  const { status, body: answered } = await send("POST", "", body);
  check(error, answered);
  expect(status).toBe(400);
});

describe("a gateway that goes", () => {
  test("lets what is under way end; the next one does the rest, and nothing twice", async () => {
    const made = await create(requests("a", ...Array<string>(20).fill("hold")));
    await holds(16);
    gateway.draining = true;
    for (const call of held) answer(call, "Yes.");
    await gateway.runs.get(String(made["id"]))?.done;
    const first = engine.calls.length;
    expect(first).toBe(17);

    expect(gateway.scopes.size).toBe(0);
    goOn(gateway.history);
    const { body } = await send("GET", `/${made["id"]}`);
    expect(body["processing_status"]).toBe("in_progress");
    await holds(20);
    for (const call of held.slice(16)) answer(call, "Yes.");
    const done = await ended(made["id"]);
    expect(done["request_counts"]).toMatchObject({ succeeded: 21 });
    expect((await results(done)).size).toBe(21);
    expect(engine.calls.length).toBe(21);
  });

  test("two that go on with one batch give each result once", async () => {
    const made = await create(requests(...Array<string>(10).fill("hold")));
    await holds(10);
    const old = { tenant: "default", id: String(made["id"]), updatedAt: Date.now() - 60_000 };
    await gateway.history!.updateResponse(old);
    const other = startGateway([], engine, [modelEntry()], 10, undefined, gateway.history);
    await fetch(`${other.url}/v1/messages/batches/${made["id"]}`);
    await holds(20);
    // one of each in turn
    for (let i = 0; i < 10; i++) for (const call of [held[i]!, held[10 + i]!]) answer(call, "Yes.");
    const done = await ended(made["id"]);
    expect((await results(done)).size).toBe(10);
    expect(done["request_counts"]).toMatchObject({ succeeded: 10 });
    await other.stop();
  });

  test("a batch whose time is up says so", async () => {
    const { history } = gateway;
    const id = `msgbatch_${"0".repeat(50)}`;
    const createdAt = Date.now() - 25 * 60 * 60 * 1000;
    await history!.putResponse({
      ...{ tenant: "default", id, kind: "batch", createdAt, status: "in_progress" },
      ...{ previousId: null, conversationId: null, model: null, safetyIdentifier: null },
      body: JSON.stringify(newBatch(id, createdAt, 2)),
      input: requests("a", "b").requests.map((request) => JSON.stringify(request)),
      output: [],
      itemIds: [],
    });
    await history!.updateResponse({ tenant: "default", id, updatedAt: Date.now() - 60_000 });
    const done = await ended(id);
    expect(done["request_counts"]).toMatchObject({ expired: 2, succeeded: 0 });
    expect(types(await results(done))).toEqual(["r-0 expired", "r-1 expired"]);
    expect(engine.calls).toEqual([]);
  });
});

test("without a store there are no batches", async () => {
  await gateway.stop();
  gateway = startGateway([], engine, [modelEntry()], 10, undefined, null);
  expect((await send("POST", "", requests("a"))).status).toBe(400);
});
