/** From the engine's tokens to what clients of Messages get. */
import { afterEach, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { check, error, foldStream, readEvents } from "../../../support/schemas/messages.ts";
import { encode, IM_END } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, modelEntry, startGateway } from "../../server/gateway.ts";
import { OSLO, play, QWEN, qwenGateway, type Script, written } from "../../server/tool-chat.ts";
import { answer, ask, CLOCK, post, refusal, user, WEATHER } from "./asking.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

const TOOLS = { tools: [WEATHER, CLOCK] };
const THINKS = { thinking: { type: "adaptive" } };

async function answered(text: string, body: object = {}, script: Script = {}) {
  await gateway?.stop();
  gateway = qwenGateway((call) => play([text], call, script));
  return answer(gateway, body);
}

describe.each([1, 3, 1000])("in messages of %d tokens", (size) => {
  test("text", async () => {
    const { content, stop_reason, usage } = await answered("naïve 👩‍👩‍👧 日本", {}, { size });
    expect(content as unknown).toEqual([{ type: "text", text: "naïve 👩‍👩‍👧 日本", citations: null }]);
    expect([stop_reason, usage["output_tokens"]]).toEqual(["end_turn", encode("naïve 👩‍👩‍👧 日本").length + 1]);
  });

  test("thinking, text and two calls", async () => {
    const text = `<think>\nWhere?\n</think>\n\nI look.\n${OSLO}\n${written("get_time", { zone: 1.5 })}`;
    const { content, stop_reason, usage } = await answered(text, { ...TOOLS, ...THINKS }, { size });
    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use", "tool_use"]);
    expect([String(content[0]!["thinking"]).trim(), String(content[1]!["text"]).trim()]).toEqual(["Where?", "I look."]);
    expect(content.slice(2).map(({ name, input }) => [name, input])).toEqual([
      ["get_weather", { city: "Oslo" }],
      ["get_time", { zone: 1.5 }],
    ]);
    expect(stop_reason).toBe("tool_use");
    expect(usage["output_tokens_details"] as unknown).toEqual({ thinking_tokens: expect.any(Number) });
  });

  test("thinking that nobody asked for is not shown, but counted", async () => {
    const { content, usage } = await answered("<think>\nHm.\n</think>\n\nYes.", {}, { size });
    expect(content.map(({ text }) => String(text).trim())).toEqual(["Yes."]);
    expect((usage["output_tokens_details"] as { thinking_tokens: number }).thinking_tokens).toBeGreaterThan(1);
  });

  test("thinking that is left out holds the thoughts in its signature", async () => {
    const display = { thinking: { type: "adaptive", display: "omitted" } };
    const { content } = await answered("<think>\nHm.\n</think>\n\nYes.", display, { size });
    expect(content.map(({ thinking, text }) => String(thinking ?? text).trim())).toEqual(["", "Yes."]);
    expect(String(content[0]!["signature"])).toStartWith("e1.");
  });

  test("a call that is cut has no input, and the stream what there is of it", async () => {
    const { content, stop_reason } = await (async () => {
      gateway = qwenGateway((call) => play([OSLO.slice(0, -20)], call, { size, reason: "length" }));
      const whole = (await (await post(gateway, { ...ask, ...TOOLS })).json()) as Awaited<ReturnType<typeof answer>>;
      const text = await (await post(gateway, { ...ask, ...TOOLS, stream: true })).text();
      const folded = foldStream(readEvents(text));
      expect(folded.content[0]!["partial_json"]).toStartWith('{"city":"');
      expect(folded.stop_reason).toBe("max_tokens");
      return whole;
    })();
    expect([content[0]!["input"], stop_reason]).toEqual([{}, "max_tokens"]);
  });

  test("a stop sequence", async () => {
    const { content, stop_reason, stop_sequence } = await answered(
      "one two STOP three",
      { stop_sequences: ["STOP", "nothing"] },
      { size },
    );
    expect([content[0]!["text"], stop_reason, stop_sequence]).toEqual(["one two ", "stop_sequence", "STOP"]);
  });
});

test("nothing at all is a message without blocks", async () => {
  expect((await answered("")).content).toEqual([]);
});

test("numbers of a call's input are those that the model wrote", async () => {
  gateway = qwenGateway((call) => play([written("get_time", '{"id": 12345678901234567890, "x": 1.0}')], call));
  const text = await (await post(gateway, { ...ask, ...TOOLS })).text();
  expect(text).toContain("12345678901234567890");
  expect(text).toContain("1.0}");
});

test("an answer that the context cuts short says so; a prompt that is too long is refused in the words that clients look for", async () => {
  const text = "one two three four five six seven eight nine ten";
  gateway = startGateway(
    [],
    new ScriptedEngine((call) => {
      queueMicrotask(() => play([text], call, { reason: "length" }));
    }),
    [modelEntry({ contextLength: 40 })],
  );
  expect((await answer(gateway, { max_tokens: 32000 })).stop_reason).toBe("model_context_window_exceeded");
  expect(gateway.engine.calls[0]!.request.sampling.maxTokens).toBeLessThan(40);
  expect((await answer(gateway, { max_tokens: 5 })).stop_reason).toBe("max_tokens");
  const refused = await refusal(gateway, { messages: [user("many words ".repeat(30))] });
  expect(refused.status).toBe(400);
  expect(refused.message).toMatch(/^prompt is too long: \d+ tokens > 40 maximum$/);
});

describe("cached tokens", () => {
  const cachedGateway = () =>
    startGateway(
      [],
      new ScriptedEngine((call) => {
        queueMicrotask(() => {
          call.chunk(encode("Yes."), { cachedTokens: 7 }).idle();
          call.chunk([IM_END], { cachedTokens: 7 });
          call.finish({ completionTokens: 2, cachedTokens: 7 }).end();
        });
      }),
      [modelEntry()],
    );

  test("do not count as input, at the start and at the end", async () => {
    gateway = cachedGateway();
    const { usage } = await answer(gateway);
    const prompt = gateway.engine.calls[0]!.request.tokenIds.length;
    expect([usage["input_tokens"], usage["cache_read_input_tokens"]]).toEqual([prompt - 7, 7]);
    const [start] = readEvents(await (await post(gateway, { ...ask, stream: true })).text());
    expect((start!["message"] as { usage: object }).usage).toMatchObject({
      input_tokens: prompt - 7,
      cache_read_input_tokens: 7,
    });
  });
});

describe("failures", () => {
  const failing = (script: (call: ScriptedCall) => void, args: string[] = []) =>
    startGateway(args, new ScriptedEngine((call) => queueMicrotask(() => script(call))), [
      modelEntry({ parsers: QWEN }),
    ]);

  test("before the first byte have a status of their own", async () => {
    gateway = failing((call) => call.end(new EngineError("overloaded", "queue full")));
    for (const stream of [false, true]) {
      const response = await post(gateway, { ...ask, stream });
      expect(response.status).toBe(529);
      const body = await response.json();
      check(error, body);
      expect((body as { error: { type: string } }).error.type).toBe("overloaded_error");
      expect(response.headers.get("retry-after")).not.toBeNull();
      expect(response.headers.get("request-id")).toBe((body as { request_id: string }).request_id);
    }
    expect(gateway.scopes.size).toBe(0);
  });

  test("behind it are an event, which is the last one; a call that is open stays so", async () => {
    gateway = failing((call) => {
      call.chunk(encode(`Look.\n${OSLO.slice(0, -20)}`)).idle();
      setTimeout(() => call.end(new EngineError("unavailable", "gone")), 20);
    });
    const events = readEvents(await (await post(gateway, { ...ask, ...TOOLS, stream: true })).text());
    const folded = foldStream(events);
    expect(folded.error?.type).toBe("api_error");
    expect(folded.content.map(({ type }) => type)).toEqual(["text", "tool_use"]);
    expect(events.filter(({ type }) => type === "content_block_stop")).toHaveLength(1);
    expect(gateway.scopes.size).toBe(0);
  });

  test("of a request are Anthropic's, whatever part of the gateway finds them", async () => {
    gateway = failing(() => {});
    for (const [body, status, type] of [
      [{ max_tokens: undefined }, 400, "invalid_request_error"],
      [{ max_tokens: 0 }, 400, "invalid_request_error"],
      [{ messages: [] }, 400, "invalid_request_error"],
      [{ model: "unknown" }, 404, "not_found_error"],
      [{ tool_choice: { type: "any" } }, 400, "invalid_request_error"],
    ] as const) {
      const refused = await refusal(gateway, body);
      expect([refused.status, refused.type]).toEqual([status, type]);
    }
    const bad = await fetch(`${gateway.url}/v1/messages`, { method: "POST", body: "{" });
    check(error, await bad.json());
    expect((await fetch(`${gateway.url}/v1/messages`)).status).toBe(405);
  });
});

test("a long prefill: the stream begins with our own counts, and pings", async () => {
  gateway = startGateway(
    ["--sse-heartbeat-secs", "1"],
    new ScriptedEngine((call) => {
      setTimeout(() => {
        call.chunk([...encode("Yes."), IM_END], { cachedTokens: 3 });
        call.finish({ completionTokens: 3, cachedTokens: 3 }).end();
      }, 3500);
    }),
    [modelEntry()],
  );
  const text = await (await post(gateway, { ...ask, stream: true })).text();
  const events = readEvents(text);
  const prompt = gateway.engine.calls[0]!.request.tokenIds.length;
  expect((events[0]!["message"] as { usage: object }).usage).toMatchObject({ input_tokens: prompt });
  expect(events.filter(({ type }) => type === "ping").length).toBeGreaterThan(1);
  expect(foldStream(events).usage).toMatchObject({ input_tokens: prompt - 3, cache_read_input_tokens: 3 });
});
