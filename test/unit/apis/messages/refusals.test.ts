/** What Messages refuses, and what it lets pass. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { encode, IM_END } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, modelEntry, startGateway } from "../../server/gateway.ts";
import { QWEN } from "../../server/tool-chat.ts";
import { ask, CLOCK, post, refusal, user, WEATHER } from "./asking.ts";

let gateway: Gateway;
beforeAll(() => {
  const engine = new ScriptedEngine((call) =>
    queueMicrotask(() =>
      call
        .chunk([...encode("Yes."), IM_END])
        .finish({ completionTokens: 3 })
        .end(),
    ),
  );
  gateway = startGateway([], engine, [modelEntry({ parsers: QWEN })]);
});
afterAll(() => gateway.stop());

const TOOLS = { tools: [WEATHER, CLOCK] };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "" } };
const assistant = (content: unknown) => ({ role: "assistant", content });
const say = (...messages: object[]) => ({ messages: [user("a"), ...messages] });

describe("refused with the name of what is wrong", () => {
  test.each<[string, object]>([
    ["max_tokens", { max_tokens: null }],
    ["messages", { messages: [] }],
    ["messages[0].content", { messages: [user([])] }],
    ["messages[0].role", { messages: [{ role: "tool", content: "a" }] }],
    ["messages[0].content[0].type", { messages: [user([image])] }],
    ["messages[0].content[0].text", { messages: [user([{ type: "text" }])] }],
    [
      "messages[1].content[0].content[0].type",
      say(user([{ type: "tool_result", tool_use_id: "t", content: [image] }])),
    ],
    [
      "messages[0].content[0].source.type",
      { messages: [user([{ type: "document", source: { type: "url", url: "x" } }])] },
    ],
    ["messages[0].content[0].source.type", { messages: [user([{ type: "document", source: {} }])] }],
    ["messages[0].content[0].source.type", { messages: [user([{ type: "document", source: { type: {} } }])] }],
    ["messages[1].content[0].type", say(assistant([image]), user("b"))],
    ["messages[1].content[0].input", say(assistant([{ type: "tool_use", id: "t", name: "n", input: "x" }]), user("b"))],
    ["messages[1].content[0].id", say(assistant([{ type: "tool_use", name: "n", input: {} }]), user("b"))],
    ["messages[1].content[0]", say(assistant([{ type: "tool_use", id: "t", name: "n", input: {} }]))],
    ["system[0].type", { system: [image] }],
    ["messages[1].content[0].type", say({ role: "system", content: [image] })],
    ["tool_choice", { tool_choice: { type: "auto" } }],
    ["tool_choice.name", { ...TOOLS, tool_choice: { type: "tool", name: "unknown" } }],
    ["tool_choice.name", { ...TOOLS, tool_choice: { type: "tool" } }],
    ["tool_choice.type", { ...TOOLS, tool_choice: { type: "required" } }],
    ["tools[0].input_schema", { tools: [{ name: "a" }] }],
    ["tools[0].name", { tools: [{ name: "a b", input_schema: {} }] }],
    ["tools[1].name", { tools: [CLOCK, CLOCK] }],
    ["tools[0].type", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
    ["tools[0].type", { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }],
    ["tools[0].type", { tools: [{ type: "mcp_toolset", mcp_server_name: "m" }] }],
    ["mcp_servers", { mcp_servers: [{ type: "url", url: "https://x", name: "m" }] }],
    ["thread", { thread: { type: "create" } }],
    ["thinking.type", { thinking: { type: "on" } }],
    ["thinking.budget_tokens", { thinking: { type: "enabled" } }],
    ["thinking.budget_tokens", { thinking: { type: "enabled", budget_tokens: 1000 } }],
    ["thinking.budget_tokens", { thinking: { type: "enabled", budget_tokens: 1024 }, max_tokens: 1024 }],
    [
      "tool_choice",
      { ...TOOLS, thinking: { type: "enabled", budget_tokens: 1024 }, max_tokens: 2000, tool_choice: { type: "any" } },
    ],
    ["output_config.effort", { output_config: { effort: "extreme" } }],
    ["output_config.format.type", { output_config: { format: { type: "text" } } }],
    ["output_config.format.schema", { output_config: { format: { type: "json_schema" } } }],
    ["temperature", { temperature: 1.5 }],
    ["cache_salt", { cache_salt: "x" }],
    ["chat_template", { chat_template: "x" }],
  ])("%s %j", async (param, body) => {
    const { status, type, message } = await refusal(gateway, body);
    expect([status, type]).toEqual([400, "invalid_request_error"]);
    if (!(param === "tool_choice" && "thinking" in body) && param !== "messages[0].content[0].type")
      expect(message.replaceAll("'", "")).toContain(param);
  });

  test("two constraints", async () => {
    const format = { type: "json_schema", schema: { type: "object" } };
    expect((await refusal(gateway, { output_config: { format }, regex: "a" })).status).toBe(400);
  });
});

describe("accepted", () => {
  test.each<[string, object]>([
    [
      "null for what is optional",
      {
        system: null,
        tools: null,
        tool_choice: null,
        thinking: null,
        output_config: null,
        stop_sequences: null,
        temperature: null,
        stream: null,
      },
    ],
    [
      "fields of telemetry and billing",
      {
        metadata: { user_id: "u" },
        service_tier: "auto",
        container: null,
        inference_geo: "eu",
        speed: "fast",
        cache_control: { type: "ephemeral" },
        user_profile_id: "p",
        fallbacks: [],
      },
    ],
    ["fields that nobody knows", { something: { new: 1 } }],
    ["edits of the context", { context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] } }],
    ["an effort", { output_config: { effort: "high" } }],
    ["the engines' sampling", { top_k: 5, min_p: 0.1, repetition_penalty: 1.1, seed: 1, min_tokens: 1 }],
    [
      "tools that a client runs",
      {
        tools: [
          { type: "bash_20250124", name: "bash" },
          { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
          { type: "memory_20250818", name: "memory" },
          {
            ...CLOCK,
            type: "custom",
            cache_control: { type: "ephemeral" },
            eager_input_streaming: true,
            defer_loading: true,
          },
        ],
      },
    ],
    ["an empty answer in the history", say(assistant([]), user("b"))],
    ["a result of an unknown call", say(user([{ type: "tool_result", tool_use_id: "none" }]))],
  ])("%s", async (_, body) => {
    const response = await post(gateway, { ...ask, ...body }, "/v1/messages?beta=true", {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "claude-code-20250219,unknown-2030-01-01",
    });
    expect([response.status, response.status === 200 ? "" : await response.text()]).toEqual([200, ""]);
  });

  test("tools of a known type have their schemas", async () => {
    await post(gateway, { ...ask, tools: [{ type: "bash_20250124", name: "bash" }] });
    const { tokenIds } = gateway.engine.calls.at(-1)!.request;
    await post(gateway, ask);
    expect(tokenIds.length).toBeGreaterThan(gateway.engine.calls.at(-1)!.request.tokenIds.length + 50);
  });

  test("sampling reaches the engine", async () => {
    const penalties = { frequency_penalty: 0.25, presence_penalty: -0.5, logit_bias: { 5: 2 } };
    const own = { temperature: 0.5, top_p: 0.9, top_k: 7, stop_sequences: ["X"] };
    await post(gateway, { ...ask, ...own, seed: 3, ...penalties });
    expect(gateway.engine.calls.at(-1)!.request.sampling).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      topK: 7,
      seed: 3,
      frequencyPenalty: 0.25,
      presencePenalty: -0.5,
      logitBias: new Map([[5, 2]]),
      maxTokens: 1000,
    });
    const schema = { type: "object", properties: { z: { type: "number" }, a: { type: "number" } } };
    await post(gateway, { ...ask, output_config: { format: { type: "json_schema", schema } } });
    expect(gateway.engine.calls.at(-1)!.request.sampling.constraint).toEqual({
      kind: "json_schema",
      schema: JSON.stringify(schema),
    });
  });
});

describe("keys and versions", () => {
  let locked: Gateway;
  beforeAll(() => {
    locked = startGateway(["--api-key", "secret"], gateway.engine, [modelEntry({ parsers: QWEN })]);
  });
  afterAll(() => locked.stop());

  test("both ways to send the key, both lines of versions, and neither", async () => {
    for (const auth of [{ authorization: "Bearer secret" }, { "x-api-key": "secret" }])
      for (const version of [{}, { "anthropic-version": "2023-06-01" }, { "anthropic-version": "2026-10-21" }])
        expect(
          (await post(locked, ask, "/v1/messages", { ...auth, ...version } as Record<string, string>)).status,
        ).toBe(200);
    const refused = await post(locked, ask);
    expect(refused.status).toBe(401);
    expect(((await refused.json()) as { error: { type: string } }).error.type).toBe("authentication_error");
    expect(refused.headers.get("request-id")).not.toBeNull();
  });

  test("HEAD / needs none", async () => {
    expect((await fetch(`${locked.url}/`, { method: "HEAD" })).status).toBe(200);
  });
});
