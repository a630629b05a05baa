/** Chat Completions over a real port: what only the whole way from socket to engine and back can show. */
import { afterEach, describe, expect, test } from "bun:test";
import { until } from "../../support/until.ts";
import { checkGrammar, fold, readFrames } from "../apis/chat/chunks.ts";
import { encode, IM_END } from "../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, rawRequest, startGateway } from "./gateway.ts";

const ask = { model: MODEL, messages: [{ role: "user", content: "Hi" }] };
let gateway: Gateway;
afterEach(() => gateway.stop());

const idle = () => gateway.scopes.size === 0 && gateway.board.running(gateway.slot) === 0;

function answer(texts: string[], call: ScriptedCall): void {
  const ids = texts.map((text) => [...encode(text), IM_END]);
  for (let at = 0; at < Math.max(...ids.map((own) => own.length)); at++)
    ids.forEach((own, index) => {
      if (at < own.length) call.chunk(own.slice(at, at + 1), { index }).idle();
    });
  ids.forEach((own, index) => {
    call.finish({ index, completionTokens: own.length });
  });
  call.end();
}

test.each([{ origin: "https://app.example" }, {}])(
  "streamed and whole answers are the same (headers %j)",
  async (headers) => {
    const texts = ['One 😀 and\n\n"two"', "日本語"];
    gateway = startGateway([], new ScriptedEngine((call) => queueMicrotask(() => answer(texts, call))));
    const streamed = await gateway.post(
      { ...ask, n: 2, stream: true, stream_options: { include_usage: true } },
      headers as Record<string, string>,
    );
    expect(streamed.headers.get("content-type")).toStartWith("text/event-stream");
    expect(streamed.headers.get("content-encoding")).toBeNull();
    const read = readFrames(await streamed.text());
    checkGrammar(read, 2, true);
    const whole = (await (await gateway.post({ ...ask, n: 2 }, headers as Record<string, string>)).json()) as {
      choices: { message: unknown }[];
      usage: Record<string, unknown>;
    };
    expect(whole.choices.map(({ message }) => message)).toEqual(
      (fold(read, 2) as { message: unknown }[]).map(({ message }) => message),
    );
    expect(whole.choices.map(({ message }) => (message as { content: string }).content)).toEqual(texts);
    expect(read.chunks.at(-1)?.usage).toEqual(whole.usage);
    expect(idle()).toBe(true);
  },
);

test("each token reaches the client when it comes, not later", async () => {
  gateway = startGateway();
  const pending = gateway.post({ ...ask, stream: true });
  await until(() => gateway.engine.calls.length === 1, "the call");
  const call = gateway.engine.calls[0]!;
  call.chunk(encode("first")).idle();
  const response = await pending; // the status waits for the first token
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  const read = async (what: string) => {
    while (!text.includes(what)) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`ended without ${what}: ${text}`);
      text += decoder.decode(value, { stream: true });
    }
  };
  await read('"content":"first"');
  call.chunk(encode(" second")).idle();
  await read('"content":" second"');
  call.finish({ completionTokens: 2 }).end();
  await read("[DONE]");
  expect((await reader.read()).done).toBe(true);
});

describe("a client that leaves", () => {
  test.each([
    [true, "in prefill"],
    [false, "in prefill"],
    [true, "in decode"],
    [false, "in decode"],
  ])("(stream %p) %s ends the engine's work and gives everything back", async (stream, phase) => {
    gateway = startGateway();
    const client = new AbortController();
    const pending = fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ ...ask, n: 2, stream }),
      signal: client.signal,
    });
    pending.catch(() => undefined);
    await until(() => gateway.engine.calls.length === 1, "the call");
    const call = gateway.engine.calls[0]!;
    expect(gateway.board.running(gateway.slot)).toBe(1);
    if (phase === "in decode") {
      call.chunk(encode("Hello"), { index: 1 }).idle();
      if (stream) await pending;
    }
    client.abort();
    await until(() => call.cancelled > 0, "the cancel");
    await until(idle, "everything given back");
    expect(call.cancelled).toBe(1);
  });
});

test("a reader that is slow pauses its own engine stream only, and loses nothing", async () => {
  gateway = startGateway([], new ScriptedEngine(), [modelEntry({ contextLength: 0 })]); // no length ends the answer
  const pieces = 6000;
  const long = encode("word ".repeat(200));
  let bytes = 0;
  let tail = "";
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: gateway.port,
    socket: {
      data(_, chunk) {
        bytes += chunk.length;
        tail = (tail + chunk.toString("latin1")).slice(-100);
      },
    },
  });
  const body = JSON.stringify({ ...ask, stream: true });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await until(() => gateway.engine.calls.length === 1, "the call");
  const slow = gateway.engine.calls[0]!;
  slow.chunk(long).idle();
  await until(() => bytes > 0, "the first token");
  socket.pause();
  let sent = 1;
  while (slow.paused === 0 && sent < pieces) {
    slow.chunk(long).idle();
    if (++sent % 50 === 0) await Bun.sleep(0);
  }
  expect(slow.paused).toBe(1);

  const quick = gateway.post({ ...ask, stream: true });
  await until(() => gateway.engine.calls.length === 2, "another call");
  answer(["not held up"], gateway.engine.calls[1]!);
  expect(await (await quick).text()).toContain("[DONE]");

  socket.resume();
  await until(() => slow.resumed === 1, "resume");
  slow.finish({ completionTokens: sent * long.length }).end();
  await until(() => tail.includes("[DONE]"), "the end");
  expect(bytes).toBeGreaterThan(sent * 1000);
  await until(idle, "everything given back");
  socket.end();
});

test("an engine that fails after the first token ends the stream with an error frame", async () => {
  gateway = startGateway(
    [],
    new ScriptedEngine((call) => call.chunk(encode("Hello")).idle().finish({ reason: "abort", completionTokens: 1 })),
  );
  const response = await gateway.post({ ...ask, stream: true });
  expect(response.status).toBe(200);
  const read = readFrames(await response.text());
  checkGrammar(read, 1, false);
  expect(read.error).toMatchObject({ code: "engine_aborted", param: null });
  const whole = await gateway.post(ask);
  expect(whole.status).toBe(500);
  expect(idle()).toBe(true);
});

test("an upload that stalls is cut off, a prefill that is silent for longer is not", async () => {
  gateway = startGateway([], new ScriptedEngine(), undefined, 1);
  const body = JSON.stringify(ask);
  const began = Date.now();
  const stalled = rawRequest(
    gateway.port,
    `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length + 1}\r\n\r\n${body}`,
    15_000,
  ).then(() => Date.now() - began);
  const silent = gateway.post(ask);
  await until(() => gateway.engine.calls.length === 1, "the call");
  expect(await stalled).toBeLessThan(12_000);
  await Bun.sleep(500);
  answer(["at last"], gateway.engine.calls[0]!);
  expect(await (await silent).text()).toContain("at last");
}, 20_000);

describe("reasoning", () => {
  const models = [modelEntry({ parsers: { reasoning: "qwen3", tool: "qwen" } })];
  const ANSWER = "<think>\nLet me see.\n</think>\n\nIt is 4.";
  async function asked(args: string[], fields: Record<string, unknown>): Promise<string> {
    await gateway?.stop();
    gateway = startGateway(args, new ScriptedEngine((call) => queueMicrotask(() => answer([ANSWER], call))), models);
    return (await gateway.post({ ...ask, ...fields })).text();
  }
  const message = async (args: string[], fields: Record<string, unknown> = {}) =>
    JSON.parse(await asked(args, fields)).choices[0].message;

  test("goes to a field of its own, by the settings and the request", async () => {
    const { content, reasoning_content, ...rest } = await message([]);
    expect([content.trim(), reasoning_content.trim()]).toEqual(["It is 4.", "Let me see."]);
    expect(rest).toEqual({ role: "assistant", refusal: null });
    expect((await message(["--reasoning-field", "reasoning"])).reasoning.trim()).toBe("Let me see.");
    const both = await message(["--reasoning-field", "both"]);
    expect(both.reasoning).toBe(both.reasoning_content);
    expect(await message([], { include_reasoning: false })).toEqual({ role: "assistant", content, refusal: null });
    expect(await message([], { separate_reasoning: false })).toEqual({
      role: "assistant",
      content: ANSWER,
      refusal: null,
    });
  });

  test("is counted, and streamed as it comes", async () => {
    expect(JSON.parse(await asked([], {})).usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(4);
    const frames = readFrames(await asked([], { stream: true })).chunks;
    const deltas = frames.flatMap(({ choices }) => choices.map(({ delta }) => delta as Record<string, string>));
    const joined = (name: string) => deltas.map((delta) => delta[name] ?? "").join("");
    expect([joined("content").trim(), joined("reasoning_content").trim()]).toEqual(["It is 4.", "Let me see."]);
    expect(deltas.filter((delta) => "reasoning_content" in delta).length).toBeGreaterThan(3);
  });
});
