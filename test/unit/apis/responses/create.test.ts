import { afterEach, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { HistoryUnavailableError } from "../../../../src/history/errors.ts";
import type { HistoryStore } from "../../../../src/history/store.ts";
import { testControl } from "../../../support/control.ts";
import { testHistory } from "../../../support/kept.ts";
import { decodeAll, encode } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { play, written } from "../../server/tool-chat.ts";
import { answered, askBothWays, post, responsesGateway, streamed, whole } from "./http.ts";

let gateway: Gateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

const answering = (
  text: string,
  more: Parameters<typeof play>[2] = {},
  entry: Parameters<typeof responsesGateway>[1] = {},
) => {
  gateway = responsesGateway((call) => play([text], call, more), entry);
  return gateway;
};
const promptOf = (call: ScriptedCall | undefined): string => decodeAll([...call!.request.tokenIds], false);

const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: null,
};

describe("answers, whole and streamed alike", () => {
  test("a text", async () => {
    const { body } = await askBothWays(answering("Hello there"), {});
    expect(body).toMatchObject({
      status: "completed",
      model: MODEL,
      output: [{ type: "message", role: "assistant", status: "completed", content: [{ text: "Hello there" }] }],
      usage: { output_tokens: encode("Hello there").length + 1 },
      store: true,
    });
  });

  test("reasoning, raw or as a summary", async () => {
    const server = answering("<think>\nhm hm\n</think>\n\nYes.");
    const { body } = await askBothWays(server, {});
    expect(body.output).toMatchObject([
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "\nhm hm\n" }] },
      { type: "message", content: [{ text: "\n\nYes." }] },
    ]);
    expect(body.usage).toMatchObject({ output_tokens_details: { reasoning_tokens: expect.any(Number) } });
    const other = await askBothWays(server, { reasoning: { effort: "high", summary: "auto" } });
    expect(other.body.output[0]).toMatchObject({ summary: [{ type: "summary_text", text: "\nhm hm\n" }] });
    expect(other.body["reasoning"]).toEqual({ effort: "high", summary: "auto" });
  });

  test("calls: parallel ones, of namespaces, and of free text", async () => {
    const calls = [
      written("get_weather", { city: "Oslo" }),
      written("mail__send", { to: "a" }),
      written("run", { input: "print(1)\n" }),
    ];
    const server = answering(calls.join("\n"));
    const tools = [
      WEATHER,
      {
        type: "namespace",
        name: "mail",
        description: "Mail",
        tools: [{ type: "function", name: "send", parameters: null }],
      },
      { type: "custom", name: "run" },
      { type: "web_search" },
    ];
    const { body } = await askBothWays(server, { tools });
    expect(body.output).toMatchObject([
      {
        type: "function_call",
        name: "get_weather",
        arguments: '{"city":"Oslo"}',
        call_id: expect.stringMatching(/^call_/),
      },
      { type: "function_call", name: "send", namespace: "mail", arguments: '{"to":"a"}' },
      { type: "custom_tool_call", name: "run", input: "print(1)\n" },
    ]);
    expect(server.logged.join("")).toContain("web_search");
    const prompt = promptOf(server.engine.calls[0]);
    expect(prompt).toContain('{"type": "function", "function": {"name": "mail__send"}}');
    expect(prompt).toContain(
      '"name": "get_weather", "description": "Tells the weather", "parameters": {"type": "object"',
    );
    expect(prompt).not.toContain("web_search");
  });

  test("logprobs, where they are asked for", async () => {
    const server = answering("Hi you");
    const { body } = await askBothWays(server, { include: ["message.output_text.logprobs"], top_logprobs: 2 });
    const [{ logprobs }] = body.output[0]!["content"] as [{ logprobs: { token: string; top_logprobs: unknown[] }[] }];
    expect(logprobs.map(({ token }) => token).join("")).toStartWith("Hi you");
    expect(logprobs[0]!.top_logprobs).toHaveLength(2);
    expect(server.engine.calls[0]!.request.sampling.logprobs).toBe(2);
    expect((await whole(server, {})).output).toMatchObject([{ content: [{ logprobs: [] }] }]);
  });

  test("an answer that is cut", async () => {
    const { body } = await askBothWays(answering("one two", { reason: "length" }), { max_output_tokens: 2 });
    expect(body).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete" }],
    });
  });

  test("an empty one", async () => {
    const { body } = await askBothWays(answering(""), {});
    expect(body.output).toMatchObject([{ type: "message", content: [{ text: "" }] }]);
  });
});

describe("what the engine is asked", () => {
  test("sampling, format, an answer no longer than the context", async () => {
    const server = answering("{}");
    const schema = { type: "object", properties: { a: { type: "integer" } } };
    const text = { format: { type: "json_schema", name: "thing", schema, strict: true } };
    const body = await whole(server, {
      text,
      temperature: 0.3,
      top_p: 0.5,
      max_output_tokens: 100_000,
      top_k: 7,
      seed: 3,
    });
    const { sampling } = server.engine.calls[0]!.request;
    expect(sampling).toMatchObject({
      temperature: 0.3,
      topP: 0.5,
      topK: 7,
      seed: 3,
      constraint: { kind: "json_schema", schema: JSON.stringify(schema) },
    });
    expect(sampling.maxTokens).toBeLessThan(4096);
    expect(body).toMatchObject({ temperature: 0.3, top_p: 0.5, max_output_tokens: 100_000, text });
    await whole(server, { text: { format: { type: "json_object" } } });
    expect(server.engine.calls[1]!.request.sampling.constraint).toEqual({ kind: "json_object" });
  });

  test("a forced call is forced, and still a call", async () => {
    const server = answering('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>');
    const tool_choice = { type: "function", name: "get_weather" };
    const { body } = await askBothWays(server, { tools: [WEATHER], tool_choice });
    expect(body).toMatchObject({ status: "completed", tool_choice, output: [{ type: "function_call" }] });
    expect(server.engine.calls[0]!.request.sampling.constraint).toBeDefined();
  });

  test("instructions come first, then the input in its order", async () => {
    const server = answering("ok");
    await whole(server, {
      instructions: "Be brief.",
      input: [
        { role: "user", content: "one" },
        { role: "assistant", content: "two" },
        { role: "user", content: [{ type: "input_text", text: "three" }] },
      ],
    });
    expect(promptOf(server.engine.calls[0])).toBe(
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\nthree<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("items may change format and effort, and add tools", async () => {
    const server = answering("{}");
    await whole(server, {
      input: [
        { role: "user", content: "a" },
        { type: "configuration_update", text: { format: { type: "json_object" } }, reasoning: { effort: "none" } },
        { type: "additional_tools", role: "developer", tools: [WEATHER] },
      ],
    });
    const [call] = server.engine.calls;
    expect(call!.request.sampling.constraint).toEqual({ kind: "json_object" });
    expect(promptOf(call)).toContain("get_weather");
    expect(promptOf(call)).toEndWith("<think>\n\n</think>\n\n");
  });
});

describe("sealed reasoning", () => {
  const include = ["reasoning.encrypted_content"];
  const ask = { store: false, include, reasoning: { summary: "auto" } };

  test("comes back from the client and into the prompt; a foreign or altered blob does not", async () => {
    const server = answering(`<think>\nsecret thoughts\n</think>\n\n${written("get_weather", { city: "Oslo" })}`);
    const tools = [WEATHER];
    const { body } = await askBothWays(server, { ...ask, tools });
    const [thought, call] = body.output as unknown as [Record<string, unknown>, Record<string, unknown>];
    expect(thought["encrypted_content"]).toStartWith("e1.");
    const next = async (reasoning: object) => {
      const result = { type: "function_call_output", call_id: call["call_id"], output: "4 degrees" };
      await whole(server, { ...ask, tools, input: [{ role: "user", content: "Hi" }, reasoning, call, result] });
      return promptOf(server.engine.calls.at(-1));
    };
    expect(await next({ ...thought, summary: [] })).toContain("secret thoughts");
    const blob = String(thought["encrypted_content"]);
    expect(await next({ ...thought, summary: [], encrypted_content: `${blob.slice(0, -6)}AAAAAA` })).not.toContain(
      "secret",
    );
    expect(await next({ ...thought, summary: [], encrypted_content: "gAAAAABforeign" })).not.toContain("secret");
  });

  test("is not there unasked", async () => {
    const body = await whole(answering("<think>\nhm\n</think>\n\nYes."), {});
    expect(body.output[0]).not.toHaveProperty("encrypted_content");
  });
});

describe("turns that are kept", () => {
  test("a response goes on from another, with its reasoning but not its instructions", async () => {
    const server = answering(`<think>\nhm\n</think>\n\n${written("get_weather", { city: "Oslo" })}`);
    const first = await whole(server, { instructions: "Secret rule.", tools: [WEATHER] });
    const call = first.output.find(({ type }) => type === "function_call")!;
    const { body } = await streamed(server, {
      previous_response_id: first.id,
      tools: [WEATHER],
      input: [{ type: "function_call_output", call_id: call["call_id"], output: "4 degrees" }],
    });
    expect(body["previous_response_id"]).toBe(first.id);
    const prompt = promptOf(server.engine.calls[1]);
    expect(prompt).toContain("<|im_start|>user\nHi<|im_end|>");
    expect(prompt).toContain("<think>\nhm\n</think>");
    expect(prompt).toContain("<tool_response>\n4 degrees\n</tool_response>");
    expect(prompt).not.toContain("Secret rule");
  });

  test("references stand for items that were kept", async () => {
    const server = answering("I am a cat.");
    const first = await whole(server, {});
    const input = [
      { role: "user", content: "Who?" },
      { id: first.output[0]!.id, type: "item_reference" },
      { role: "user", content: "Sure?" },
    ];
    await whole(server, { input });
    expect(promptOf(server.engine.calls[1])).toContain("Who?<|im_end|>\n<|im_start|>assistant\nI am a cat.<|im_end|>");
    const unknown = await answered(await post(server, { input: [{ id: "msg_unknown" }] }), 404);
    expect(unknown["error"]).toMatchObject({ param: "input[0]", message: "Item with id 'msg_unknown' not found." });
  });

  test("store: false keeps nothing", async () => {
    const server = answering("x");
    const { body } = await streamed(server, { store: false });
    expect(body["store"]).toBe(false);
    const error = await answered(await post(server, { previous_response_id: body.id }), 404);
    expect(error["error"]).toMatchObject({ code: "previous_response_not_found", param: "previous_response_id" });
  });
});

test("what could not be kept was not answered", async () => {
  const history: HistoryStore = { ...testHistory(), putResponse: () => Promise.reject(new HistoryUnavailableError()) };
  const engine = new ScriptedEngine((call) => queueMicrotask(() => play(["Hello"], call)));
  gateway = startGateway([], engine, [modelEntry()], 10, testControl, history);
  const { error } = await answered(await post(gateway, {}), 503);
  expect(error).toMatchObject({ code: "history_unavailable" });
  const { body } = await streamed(gateway, {});
  expect(body).toMatchObject({ status: "failed", error: { code: "server_error" }, output: [{ status: "completed" }] });
  expect(gateway.logged.filter((line) => line.includes("could not be stored"))).toHaveLength(2);
  expect((await whole(gateway, { store: false })).status).toBe("completed");
});

test("arguments that are an object reach the prompt as they were written", async () => {
  const server = answering("ok");
  const call = '{"type":"function_call","call_id":"c","name":"f","arguments":{"b":1.0,"2":[1,2],"1":{"x":1e3}}}';
  const input = `[{"role":"user","content":"a"},${call},{"type":"function_call_output","call_id":"c","output":"x"}]`;
  expect((await post(server, `{"model":"${MODEL}","input":${input}}`)).status).toBe(200);
  expect(promptOf(server.engine.calls[0])).toContain('"arguments": {"b": 1.0, "2": [1, 2], "1": {"x": 1000.0}}');
});

describe("truncation", () => {
  const turn = (letter: string) => [
    { role: "user", content: `${letter} `.repeat(60) },
    { role: "assistant", content: "ok" },
  ];
  const input = [...turn("a"), ...turn("b"), ...turn("c"), { role: "user", content: "last words" }];

  test("auto drops the oldest turns until the rest fits", async () => {
    const server = answering("ok", {}, { contextLength: 120 });
    const body = await whole(server, { input, truncation: "auto", instructions: "Rule." });
    const prompt = promptOf(server.engine.calls[0]);
    expect(prompt).toContain("Rule.");
    expect(prompt).toContain("last words");
    expect(prompt).not.toContain("a a");
    expect(prompt).not.toContain("b b");
    expect(body["truncation"]).toBe("auto");
    expect(server.engine.calls[0]!.request.tokenIds.length).toBeLessThan(120);
  });

  test("disabled, or nothing that could go, is an error of length", async () => {
    const server = answering("ok", {}, { contextLength: 120 });
    const refused = await answered(await post(server, { input }), 400);
    expect(refused["error"]).toMatchObject({ code: "context_length_exceeded", param: "input" });
    const single = await answered(await post(server, { input: "a ".repeat(500), truncation: "auto" }), 400);
    expect(single["error"]).toMatchObject({ code: "context_length_exceeded" });
  });
});

describe("refused requests", () => {
  test.each<[string, object | string, string | null]>([
    ["no model", '{"input": "a"}', "model"],
    ["no input", { input: null }, "input"],
    ["an empty input", { input: [] }, "input"],
    ["an input that is a number", { input: 1 }, "input"],
    [
      "a conversation and a previous response",
      { conversation: "conv_1", previous_response_id: "resp_1" },
      "previous_response_id",
    ],
    ["background without store", { background: true, store: false }, "background"],
    ["a stored prompt", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["a format that is none", { text: { format: { type: "xml" } } }, "text.format.type"],
    ["a schema without a name", { text: { format: { type: "json_schema", schema: {} } } }, "text.format.name"],
    [
      "a format that is no schema",
      { text: { format: { type: "json_schema", name: "a", schema: "x" } } },
      "text.format.schema",
    ],
    ["two constraints", { text: { format: { type: "json_object" } }, regex: "a" }, null],
    ["a temperature too high", { temperature: 3 }, "temperature"],
    ["too many alternatives", { top_logprobs: 21 }, "top_logprobs"],
    ["what no engine can do", { use_beam_search: true }, "use_beam_search"],
    ["a truncation that is none", { truncation: "some" }, "truncation"],
    [
      "an image",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "data:," }] }] },
      "input[0].content[0].type",
    ],
  ])("%s", async (_, body, param) => {
    const { error } = await answered(await post(answering("x"), body), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
    expect(gateway!.engine.calls).toHaveLength(0);
  });

  test("null is the same as absent, and what is unknown is ignored", async () => {
    const fields = [
      "instructions",
      "tools",
      "tool_choice",
      "text",
      "reasoning",
      "include",
      "metadata",
      "store",
      "stream",
      "truncation",
      "user",
      "conversation",
      "previous_response_id",
      "max_output_tokens",
      "temperature",
      "service_tier",
      "parallel_tool_calls",
      "background",
    ];
    const body = await whole(answering("x"), {
      ...Object.fromEntries(fields.map((name) => [name, null])),
      client_metadata: { a: 1 },
    });
    expect(body.status).toBe("completed");
  });

  test("what is said about a request is told again", async () => {
    const said = {
      metadata: { a: "b" },
      service_tier: "flex",
      safety_identifier: "s",
      prompt_cache_key: "k",
      user: "u",
      text: { format: { type: "text" }, verbosity: "low" },
      parallel_tool_calls: false,
      max_tool_calls: 3,
      instructions: "Do.",
    };
    expect(await whole(answering("x"), said)).toMatchObject(said);
  });
});

describe("engines that fail", () => {
  const failing = (text: string) => {
    gateway = responsesGateway((call) => {
      if (text !== "") call.chunk(encode(text)).idle();
      call.end(new EngineError("failed", "broken"));
    });
    return gateway;
  };

  test("before the first event: a status of its own, streamed or not", async () => {
    for (const stream of [false, true]) {
      const response = await post(failing(""), { stream });
      expect(response.status).toBe(500);
      expect(await response.json()).toMatchObject({ error: { type: "server_error" } });
      await gateway!.stop();
    }
  });

  test("after it: the item is closed, error, failed", async () => {
    const { body, events } = await streamed(failing("partly"), {});
    expect(body).toMatchObject({
      status: "failed",
      error: { code: "server_error" },
      output: [{ status: "incomplete", content: [{ text: "partly" }] }],
    });
    expect(events.at(-2)?.type).toBe("error");
    expect((await post(gateway!, {})).status).toBe(500);
  });
});

test("in a long silence the status goes out with the first events; what fails then is told in the stream", async () => {
  const engine = new ScriptedEngine(
    (call) => void setTimeout(() => call.end(new EngineError("overloaded", "full")), 1500),
  );
  gateway = startGateway(["--sse-heartbeat-secs", "1"], engine, [modelEntry()]);
  const { body, events } = await streamed(gateway, {});
  expect(events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "error",
    "response.failed",
  ]);
  expect(body["error"]).toEqual({ code: "rate_limit_exceeded", message: "full. Please try again in 1s." });
});

test("a client that leaves ends the engine's work, and the request", async () => {
  gateway = responsesGateway((call) => void call.chunk(encode("for ever")).idle());
  const controller = new AbortController();
  const response = await post(gateway, { stream: true }, { signal: controller.signal });
  const reader = response.body!.getReader();
  await reader.read();
  controller.abort();
  while (gateway.engine.calls[0]!.cancelled === 0 || gateway.scopes.size > 0) await Bun.sleep(1);
});
