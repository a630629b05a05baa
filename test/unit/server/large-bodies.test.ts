/** Large bodies against a gateway: what is wrong is said as each API says it, and other requests are not kept waiting. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { decodeAll } from "../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { type Gateway, modelEntry, startGateway } from "./gateway.ts";

const list = (count: number, item: (i: number) => string) => Array.from({ length: count }, (_, i) => item(i)).join(",");
const KEYS = `{"x":{${list(500_000, (i) => `"k${i}":1`)}}}`;
const BRACKETS = `{"x":${"[".repeat(10_000_000)}`;
const NUMBERS = list(1_000_000, (i) => String(i % 100_000));
const messages = (count: number) =>
  `[${list(count, (i) => `{"role":"${i % 2 === 0 ? "user" : "assistant"}","content":"text ${i}"}`)}]`;
const MANY = 40_000;
const SAID = '{"role":"user","content":"Hi"}';
const TOOLS = list(1000, (i) => {
  const properties = list(300, (k) => `"p${k}":{"type":"string","description":"words about ${k}","minimum":1.0}`);
  return `{"type":"function","function":{"name":"f${i}","parameters":{"type":"object","properties":{${properties}}}}}`;
});
/** Calls with their results, as each API has them. */
const HISTORIES: [string, string, string][] = [
  [
    "calls with objects, and results",
    "/v1/messages",
    `{"model":"demo","max_tokens":1,"messages":[${SAID},{"role":"assistant","content":[${list(MANY, (i) => `{"type":"tool_use","id":"t${i}","name":"f","input":{"a":${i}.0}}`)}]},{"role":"user","content":[${list(MANY, (i) => `{"type":"tool_result","tool_use_id":"t${i}","content":"r${i}"}`)}]}]}`,
  ],
  [
    "calls with objects, and results",
    "/v1/responses",
    `{"model":"demo","input":[${SAID},${list(MANY, (i) => `{"type":"function_call","call_id":"t${i}","name":"f","arguments":{"a":${i}.0}},{"type":"function_call_output","call_id":"t${i}","output":"r${i}"}`)}]}`,
  ],
  [
    "reasoning",
    "/v1/responses",
    `{"model":"demo","input":[${SAID},${list(2 * MANY, (i) => `{"type":"reasoning","summary":[{"type":"summary_text","text":"t${i}"}]}`)}]}`,
  ],
  [
    "calls with objects, and results",
    "/v1beta/interactions",
    `{"model":"demo","input":[${list(MANY, (i) => `{"type":"function_call","id":"t${i}","name":"f","arguments":{"a":${i}.0}},{"type":"function_result","call_id":"t${i}","result":"r${i}"}`)}]}`,
  ],
  [
    "calls of one message",
    "/v1/chat/completions",
    `{"model":"demo","messages":[${SAID},{"role":"assistant","tool_calls":[${list(MANY, (i) => `{"id":"c${i}","type":"function","function":{"name":"f","arguments":{"a":${i}.0}}}`)}]},${SAID}]}`,
  ],
];
/** A turn of the event loop is to take 20 ms at most; the machines that tests run on are busy, and some are slow. */
const TURN_MS = 80;

let gateway: Gateway;
beforeAll(() => {
  const engine = new ScriptedEngine((call) =>
    queueMicrotask(() => call.chunk([1]).idle().finish({ completionTokens: 1 }).end()),
  );
  gateway = startGateway([], engine, [modelEntry({ contextLength: 200_000 })]);
});
afterAll(() => gateway.stop());

async function send(path: string, body: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  return { status: response.status, text: await response.text() };
}

/** What this thread has worked, in ms. */
function worked(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** The most that was worked in one turn of the event loop while a request was answered. */
const longestTurn = (path: string, body: string): Promise<number> => longestTurnOf(() => send(path, body));

async function longestTurnOf(ask: () => Promise<unknown>): Promise<number> {
  let [longest, last, running] = [0, worked(), true];
  const look = (): void => {
    const now = worked();
    longest = Math.max(longest, now - last);
    last = now;
    if (running) setTimeout(look, 0);
  };
  look();
  await ask();
  running = false;
  return longest;
}

const PATHS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/messages/batches",
  "/v1beta/interactions",
  "/v1/embeddings",
  "/v1/tokenize",
  "/v1/detokenize",
  "/parse/function_call",
];

describe.each(PATHS)("%s", (path) => {
  test.each([
    [KEYS, "The body has an object of more than 100000 keys"],
    [BRACKETS, "The body nests deeper than 256 levels"],
  ])("refuses it in the API's own words: %#", async (body, message) => {
    const { status, text } = await send(path, body);
    const small = await send(path, `{"x":${"[".repeat(300)}${"]".repeat(300)}}`);
    expect([status, small.status]).toEqual([400, 400]);
    // the same error as for a small body, in other words
    const shape = (json: string) => json.replaceAll(/"(?:request_id|id)":"[^"]*"/g, '"id":""');
    expect(shape(text)).toBe(shape(small.text).replace("The body nests deeper than 256 levels", message));
  });

  test("says of a large one what it says of a small one", async () => {
    const wrong = (filler: string) => `{"model":1,"filler":"${filler}"}`;
    const [large, small] = [await send(path, wrong("x".repeat(1 << 19))), await send(path, wrong("x"))];
    expect(small.status).toBe(400);
    const plain = (json: string) => json.replaceAll(/"request_id":"[^"]*"/g, "");
    expect([large.status, plain(large.text)]).toEqual([400, plain(small.text)]);
  });
});

test("every message of a long chat is in the prompt, in its place", async () => {
  const { status } = await send("/v1/chat/completions", `{"model":"demo","messages":${messages(3001)}}`);
  expect(status).toBe(200);
  const prompt = decodeAll([...gateway.engine.calls.at(-1)!.request.tokenIds]);
  expect([...(prompt.match(/text \d+/g) ?? [])]).toEqual(Array.from({ length: 3001 }, (_, i) => `text ${i}`));
});

test("lists of numbers are taken at any length", async () => {
  const detokenized = await send("/v1/detokenize", `{"model":"demo","tokens":[${NUMBERS}]}`);
  expect(detokenized.status).toBe(200);
  const asked = await send("/v1/completions", `{"model":"demo","prompt":[${NUMBERS}]}`);
  expect(asked.text).toContain("resulted in 1000000 tokens");
});

describe("the event loop is not held by", () => {
  test.each([
    ["keys", "/v1/chat/completions", KEYS],
    ["brackets", "/v1/chat/completions", BRACKETS],
    [
      "strings",
      "/v1/chat/completions",
      `{"model":"demo","messages":${messages(1)},"x":[${list(200_000, (i) => `"text ${i}"`)}]}`,
    ],
    ["wrong items", "/v1/chat/completions", `{"model":"demo","messages":[${list(400_000, () => "1")}]}`],
    ["numbers", "/v1/completions", `{"model":"demo","prompt":[${NUMBERS}]}`],
    ["messages", "/v1/chat/completions", `{"model":"demo","messages":${messages(8000)}}`],
    ["tools", "/v1/chat/completions", `{"model":"demo","messages":[${SAID}],"tools":[${TOOLS}]}`],
    ...HISTORIES,
  ])(
    "%s: %s",
    async (_, path, body) => {
      let least = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 8 && least > TURN_MS; round++) least = Math.min(least, await longestTurn(path, body));
      expect(least).toBeLessThan(TURN_MS);
    },
    60_000,
  );

  test("messages of a WebSocket", async () => {
    const message = `{"type":"response.create","model":"none","input":"Hi","x":[${list(1_500_000, (i) => `"text ${i}"`)}]}`;
    const socket = new WebSocket(`ws://localhost:${gateway.port}/v1/responses`);
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const answer = () => new Promise((resolve) => socket.addEventListener("message", resolve, { once: true }));
    const asked = async (): Promise<void> => {
      socket.send(message);
      expect((await answer()) as MessageEvent).toMatchObject({ data: expect.stringContaining("model_not_found") });
    };
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 8 && least > TURN_MS; round++) least = Math.min(least, await longestTurnOf(asked));
    socket.close();
    expect(least).toBeLessThan(TURN_MS);
  }, 60_000);
});
