import { describe, expect, test } from "bun:test";
import { encode } from "../../generation/demo-tokenizer.ts";
import { MODEL } from "../../server/gateway.ts";
import { written } from "../../server/tool-chat.ts";
import { askBothWays, gatewaysOfTests, post, promptOf, WEATHER, whole } from "./http.ts";

const { answering } = gatewaysOfTests();

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
    // a call, or an answer in the format
    const { constraint } = call!.request.sampling;
    const tag = constraint?.kind === "structural_tag" ? constraint.tag : "";
    for (const told of ['{"type":"json_schema","json_schema":{"type":"object"}}', '\\"get_weather\\"'])
      expect(tag).toContain(told);
    expect(promptOf(call)).toContain("get_weather");
    expect(promptOf(call)).toEndWith("<think>\n\n</think>\n\n");
  });
});

test("arguments that are an object reach the prompt as they were written", async () => {
  const server = answering("ok");
  const call = '{"type":"function_call","call_id":"c","name":"f","arguments":{"b":1.0,"2":[1,2],"1":{"x":1e3}}}';
  const input = `[{"role":"user","content":"a"},${call},{"type":"function_call_output","call_id":"c","output":"x"}]`;
  expect((await post(server, `{"model":"${MODEL}","input":${input}}`)).status).toBe(200);
  expect(promptOf(server.engine.calls[0])).toContain('"arguments": {"b": 1.0, "2": [1, 2], "1": {"x": 1000.0}}');
});
