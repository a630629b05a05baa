/** Calls that are told in another way: of custom tools, of legacy functions; and of models whose markers are plain text. */
import { afterEach, describe, expect, test } from "bun:test";
import { decodeAll } from "../generation/demo-tokenizer.ts";
import type { Gateway } from "./gateway.ts";
import { type Answered, askAllWays, CODE, OSLO, play, qwenGateway, WEATHER, written } from "./tool-chat.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

const PYTHON = 'print("å\\n")\nx = {"a": 1} # 👩‍👩‍👧';

describe("custom tools", () => {
  const ask = async (text: string, body: object = {}) => {
    await gateway?.stop();
    gateway = qwenGateway((call) => play([text], call));
    return askAllWays(gateway, { tools: [WEATHER, CODE], ...body });
  };

  test("their calls carry the text, beside functions", async () => {
    const { choices, read } = await ask(`${written("run_code", { input: PYTHON })}\n${OSLO}`);
    expect(choices[0]!.message.tool_calls as unknown).toEqual([
      { id: expect.any(String), type: "custom", custom: { name: "run_code", input: PYTHON } },
      { id: expect.any(String), type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
    ]);
    const deltas = read.chunks.flatMap(({ choices: [choice] }) => choice?.delta.tool_calls ?? []);
    expect(deltas[0]).toEqual({
      index: 0,
      id: expect.any(String),
      type: "custom",
      custom: { name: "run_code", input: "" },
    });
    expect(deltas.filter(({ custom }) => custom !== undefined).length).toBeGreaterThan(8);
  });

  test("arguments of another form are the text as they stand", async () => {
    const { choices } = await ask(written("run_code", '{"code": "x"}'));
    expect(choices[0]!.message.tool_calls as unknown).toMatchObject([{ custom: { input: '{"code": "x"}' } }]);
  });

  test("the text is text, whatever it looks like", async () => {
    gateway = qwenGateway(
      (call) =>
        play(
          ["<tool_call>\n<function=run_code>\n<parameter=input>\n42\n</parameter>\n</function>\n</tool_call>"],
          call,
        ),
      { parsers: { tool: "qwen_xml", reasoning: undefined } },
    );
    const { choices } = await askAllWays(gateway, { tools: [CODE] });
    expect(choices[0]!.message.tool_calls as unknown).toMatchObject([{ custom: { name: "run_code", input: "42" } }]);
  });

  test("the model is told a function with one text; one can be forced", async () => {
    const { choices } = await ask(written("run_code", { input: "1" }), {
      tool_choice: { type: "custom", custom: { name: "run_code" } },
    });
    expect(choices[0]!.message.tool_calls as unknown).toMatchObject([{ custom: { name: "run_code", input: "1" } }]);
    const { request } = gateway.engine.calls[0]!;
    expect(request.sampling.constraint).toMatchObject({
      kind: "structural_tag",
      tag: expect.stringContaining("input"),
    });
    expect(decodeAll([...request.tokenIds])).toContain('"properties": {"input": {"type": "string"}}');
  });

  test("their calls go into the next prompt", async () => {
    const call = { id: "c", type: "custom", custom: { name: "run_code", input: 'print("x")' } };
    await ask("Done.", {
      messages: [
        { role: "user", content: "Run" },
        { role: "assistant", tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: "x" },
      ],
    });
    expect(decodeAll([...gateway.engine.calls[0]!.request.tokenIds])).toContain(
      '{"name": "run_code", "arguments": {"input": "print(\\"x\\")"}}',
    );
  });
});

describe("legacy functions", () => {
  const ask = async (text: string, body: object = {}) => {
    await gateway?.stop();
    gateway = qwenGateway((call) => play([text], call));
    return askAllWays(gateway, { tools: undefined, functions: [WEATHER.function], ...body });
  };

  test("are answered with one function_call, whole and streamed", async () => {
    const { choices, read } = await ask(`<think>Hm</think>${OSLO}\n${OSLO}`);
    expect([choices[0]!.message, choices[0]!.finish_reason]).toEqual([
      {
        role: "assistant",
        content: null,
        refusal: null,
        reasoning_content: "Hm",
        function_call: { name: "get_weather", arguments: '{"city":"Oslo"}' },
      },
      "function_call",
    ]);
    const deltas = read.chunks.flatMap(({ choices: [choice] }) => choice?.delta.function_call ?? []);
    expect(deltas[0]).toEqual({ name: "get_weather", arguments: "" });
    for (const delta of deltas.slice(1)) expect(Object.keys(delta)).toEqual(["arguments"]);
    expect(gateway.engine.calls.every(({ cancelled }) => cancelled === 1)).toBe(true);
  });

  test("that are named, or switched off", async () => {
    const named = await ask(OSLO, { function_call: { name: "get_weather" } });
    expect(named.choices[0]).toMatchObject({
      message: { function_call: { name: "get_weather" } },
      finish_reason: "stop",
    });
    const none = await ask(OSLO, { function_call: "none" });
    expect(none.choices[0]!.message).toEqual({ role: "assistant", content: OSLO, refusal: null });
  });

  test("their results are in the next prompt", async () => {
    await ask("Cold.", {
      messages: [
        { role: "user", content: "Oslo?" },
        { role: "assistant", content: null, function_call: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
        { role: "function", name: "get_weather", content: "4 degrees" },
      ],
    });
    const prompt = decodeAll([...gateway.engine.calls[0]!.request.tokenIds]);
    expect(prompt).toContain('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>');
    expect(prompt).toContain("<tool_response>\n4 degrees\n</tool_response>");
  });
});

const TICKS = "```";
const FORMATS: readonly (readonly [string, string | undefined, string])[] = [
  ["llama3_json", undefined, '{"name": "get_weather", "parameters": {"city": "Oslo"}}'],
  ["mistral", "mistral", '[THINK]Hm[/THINK][TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]'],
  ["mistral", undefined, '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}'],
  [
    "deepseek_v3",
    "deepseek_r1",
    `<think>Hm</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n${TICKS}json\n{"city": "Oslo"}\n${TICKS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  ],
  [
    "deepseek_v31",
    undefined,
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  ],
  [
    "qwen3_coder",
    "qwen3",
    "<think>Hm</think><tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
  ],
  ["pythonic", undefined, '[get_weather(city="Oslo")]'],
  [
    "glm45",
    "glm45",
    "<think>Hm</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
  ],
  [
    "kimi_k2",
    undefined,
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
  ],
  [
    "openai",
    "openai",
    '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}',
  ],
];

test("harmony's reasoning can be told as content", async () => {
  gateway = qwenGateway(
    (call) =>
      play(["<|channel|>analysis<|message|>Hm. <|end|><|start|>assistant<|channel|>final<|message|>Yes."], call),
    {
      parsers: { tool: "openai", reasoning: "openai" },
    },
  );
  for (const tools of [undefined, [WEATHER]]) {
    const { choices, usage } = await askAllWays(gateway, { separate_reasoning: false, tools });
    expect(choices[0]!.message).toEqual({ role: "assistant", content: "Hm. Yes.", refusal: null });
    expect(usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(0);
  }
});

test.each(FORMATS)("%s (reasoning: %p) with Qwen's tokenizer", async (tool, reasoning, text) => {
  gateway = qwenGateway((call) => play([text], call), { parsers: { tool, reasoning } });
  const { choices } = await askAllWays(gateway, {});
  const [choice] = choices as [Answered];
  expect(choice.message.tool_calls?.map(({ function: { name, arguments: args } }) => [name, JSON.parse(args)])).toEqual(
    [["get_weather", { city: "Oslo" }]],
  );
  expect([choice.message.content, choice.finish_reason]).toEqual([null, "tool_calls"]);
  expect(choice.message.reasoning_content).toBe(reasoning === undefined ? undefined : "Hm");
});
