/** Tool calls in Chat Completions, from the engine's tokens to what clients get. */
import { afterEach, describe, expect, test } from "bun:test";
import { decodeAll } from "../generation/demo-tokenizer.ts";
import type { Gateway } from "./gateway.ts";
import { type Answered, ask, askAllWays, CLOCK, OSLO, play, qwenGateway, type Script, written } from "./tool-chat.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

async function answered(text: string | string[], body: object = {}, script: Script = {}) {
  await gateway?.stop();
  gateway = qwenGateway((call) => play([text].flat(), call, script));
  return askAllWays(gateway, body);
}

const callsOf = ({ message }: Answered) =>
  message.tool_calls?.map((call) => [call.function.name, call.function.arguments]);
const NL = "\n";

describe.each([1, 3, 1000])("in messages of %d tokens", (size) => {
  test("one call", async () => {
    const { choices, usage } = await answered(OSLO, {}, { size });
    const [choice] = choices as [Answered];
    expect(choice.message).toEqual({
      role: "assistant",
      content: null,
      refusal: null,
      tool_calls: [
        { id: expect.any(String), type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
      ],
    });
    expect([choice.finish_reason, usage.completion_tokens_details.reasoning_tokens]).toEqual(["tool_calls", 0]);
  });

  test("reasoning, text, and several calls, one of a tool that nobody declared", async () => {
    const text = `<think>${NL}Where?${NL}</think>${NL}${NL}I look.${NL}${OSLO}${NL}${written("unknown", {})}${NL}${written("get_time", { zone: "日本 👩‍👩‍👧" })}`;
    const { choices, usage } = await answered(text, {}, { size });
    const [{ message, finish_reason, ...rest }] = choices as [Answered];
    expect([message.reasoning_content?.trim(), message.content?.trim()]).toEqual(["Where?", "I look."]);
    expect(callsOf({ message, finish_reason, ...rest })).toEqual([
      ["get_weather", '{"city":"Oslo"}'],
      ["unknown", "{}"],
      ["get_time", '{"zone":"日本 👩‍👩‍👧"}'],
    ]);
    expect(finish_reason).toBe("tool_calls");
    expect(usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(2);
  });

  test("reasoning before a call is no content", async () => {
    const { choices } = await answered(`<think>${NL}Hm.${NL}</think>${NL}${NL}${OSLO}`, {}, { size });
    expect(choices[0]!.message.content).toBeNull();
    expect(choices[0]!.message.reasoning_content?.trim()).toBe("Hm.");
    expect(callsOf(choices[0]!)).toEqual([["get_weather", '{"city":"Oslo"}']]);
  });

  test("text alone, JSON alone, nothing at all", async () => {
    for (const text of ["Sunny.", '{"name": "get_weather", "arguments": {"city": "Oslo"}}', '{"a": [1]}']) {
      const { choices } = await answered(text, {}, { size });
      expect([choices[0]!.message, choices[0]!.finish_reason]).toEqual([
        { role: "assistant", content: text, refusal: null },
        "stop",
      ]);
    }
    gateway = qwenGateway((call) => play([""], call));
    expect(await (await gateway.post(ask)).json()).toMatchObject({ choices: [{ message: { content: "" } }] });
  });

  test("a call that is cut off keeps the arguments that there are", async () => {
    const cut = OSLO.slice(0, OSLO.indexOf("slo"));
    const { choices } = await answered(`${OSLO}${NL}${cut}`, {}, { size, reason: "length" });
    expect(callsOf(choices[0]!)).toEqual([
      ["get_weather", '{"city":"Oslo"}'],
      ["get_weather", '{"city":"O'],
    ]);
    expect(choices[0]!.finish_reason).toBe("length");
  });

  test("several choices, each with calls of its own", async () => {
    const { choices } = await answered([`Well.${NL}${OSLO}`, "No.", `${OSLO}${NL}${OSLO}`], { n: 3 }, { size });
    expect(choices.map((choice) => [choice.message.content?.trim(), callsOf(choice)?.length])).toEqual([
      ["Well.", 1],
      ["No.", undefined],
      [undefined, 2],
    ]);
    expect(choices.map(({ finish_reason }) => finish_reason)).toEqual(["tool_calls", "stop", "tool_calls"]);
    const ids = choices.flatMap(({ message }) => message.tool_calls?.map(({ id }) => id) ?? []);
    expect(new Set(ids).size).toBe(3);
  });

  test("with parallel_tool_calls false the first call ends the answer, and the engine's work", async () => {
    const { choices } = await answered(`${OSLO}${NL}${OSLO}${NL}and so on`, { parallel_tool_calls: false }, { size });
    expect(callsOf(choices[0]!)).toEqual([["get_weather", '{"city":"Oslo"}']]);
    expect(choices[0]!.finish_reason).toBe("tool_calls");
    expect(gateway.engine.calls.map(({ cancelled, request }) => [cancelled, request.stream])).toEqual(
      Array(4).fill([1, true]),
    );
  });

  test("stop strings count in text and end a call", async () => {
    const text = `Let me see END this${NL}${OSLO}`;
    const { choices } = await answered(text, { stop: ["END"] }, { size });
    expect([choices[0]!.message.content, choices[0]!.finish_reason]).toEqual(["Let me see ", "stop"]);
    const waits = (await answered(`The END${OSLO}`, { stop: ["END of", "he END.", "ND", "END"] }, { size })).choices;
    expect([waits[0]!.message.content, callsOf(waits[0]!), waits[0]!.finish_reason]).toEqual([
      "The ",
      undefined,
      "stop",
    ]);
    const within = (await answered(`See:${NL}${OSLO}`, { stop: "Os" }, { size })).choices;
    expect([callsOf(within[0]!), within[0]!.finish_reason]).toEqual([[["get_weather", '{"city":"']], "stop"]);
    const never = (await answered(`<think>END</think>${OSLO}`, { stop: "END" }, { size })).choices;
    expect([never[0]!.message.reasoning_content, callsOf(never[0]!)?.length]).toEqual(["END", 1]);
  });
});

test("chunks are those of OpenAI", async () => {
  const { read } = await answered(`Look.${OSLO}`);
  const deltas = read.chunks.flatMap(({ choices }) =>
    choices.map(({ delta, finish_reason }) => [delta, finish_reason]),
  );
  expect(deltas[0]).toEqual([{ role: "assistant", content: "" }, null]);
  const begin = deltas.findIndex(([delta]) => "tool_calls" in (delta as object));
  expect(deltas[begin]).toEqual([
    {
      tool_calls: [
        { index: 0, id: expect.any(String), type: "function", function: { name: "get_weather", arguments: "" } },
      ],
    },
    null,
  ]);
  for (const [delta] of deltas.slice(begin + 1, -1))
    expect(delta).toEqual({ tool_calls: [{ index: 0, function: { arguments: expect.any(String) } }] });
  expect(deltas.slice(begin + 1, -1).length).toBeGreaterThan(2);
  expect(deltas.at(-1)).toEqual([{}, "tool_calls"]);
  const only = await answered(OSLO);
  expect(only.read.chunks[0]?.choices[0]?.delta).toEqual({ role: "assistant", content: null });
});

test("arguments go out as they come", async () => {
  const long = "x".repeat(4000);
  const { read } = await answered(written("get_weather", { city: long }));
  const pieces = read.chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
  expect(pieces.length).toBeGreaterThan(200);
});

test("ids of calls are the gateway's own, whatever a model writes as one", async () => {
  gateway = qwenGateway((call) => {
    const one = '<tool_call>{"id": "abc", "name": "get_time", "arguments": {}}</tool_call>';
    play([`${one}\n${one}\n${one.replace("abc", "")}`], call);
  });
  const { choices } = (await (await gateway.post(ask)).json()) as { choices: Answered[] };
  const ids = choices[0]!.message.tool_calls!.map(({ id }) => id);
  const fresh = expect.stringMatching(/^call_[0-9a-f]{24}$/);
  expect(ids).toEqual([fresh, fresh, fresh]);
  expect(new Set(ids).size).toBe(3);
});

test("arguments are the model's own bytes", async () => {
  const args = '{ "city" : "Å\\u0041\\n",  "n": 1.50e+2, "big": 12345678901234567890 }';
  expect(callsOf((await answered(written("get_weather", args))).choices[0]!)).toEqual([["get_weather", args]]);
});

test("without tools, or with tool_choice none, calls stay text", async () => {
  for (const body of [{ tools: undefined }, { tools: [] }, { tool_choice: "none" }]) {
    const { choices } = await answered(OSLO, body);
    expect([choices[0]!.message, choices[0]!.finish_reason]).toEqual([
      { role: "assistant", content: OSLO, refusal: null },
      "stop",
    ]);
    expect(gateway.engine.calls[0]?.request.sampling.constraint).toBeUndefined();
  }
});

test("the setting stop-in-reasoning lets stop strings end thoughts", async () => {
  gateway = qwenGateway((call) => play([`<think>One END</think>${OSLO}`], call), { args: ["--stop-in-reasoning"] });
  const { choices } = await askAllWays(gateway, { stop: "END" });
  expect(choices[0]).toMatchObject({ message: { content: null, reasoning_content: "One " }, finish_reason: "stop" });
  expect(choices[0]!.message.tool_calls).toBeUndefined();
});

describe("tool_choice", () => {
  const tagOf = () => {
    const constraint = gateway.engine.calls[0]?.request.sampling.constraint;
    return constraint?.kind === "structural_tag" ? constraint.tag : undefined;
  };

  test("auto asks nothing of the engine", async () => {
    const { choices } = await answered(OSLO, { tool_choice: "auto" });
    expect([choices[0]!.finish_reason, tagOf()]).toEqual(["tool_calls", undefined]);
  });

  test("required makes the engine call any of them", async () => {
    const { choices } = await answered(OSLO, { tool_choice: "required" });
    expect([callsOf(choices[0]!)?.length, choices[0]!.finish_reason]).toEqual([1, "tool_calls"]);
    expect(tagOf()).toContain("get_weather");
    expect(tagOf()).toContain("get_time");
  });

  test("a named function is the only one, called once", async () => {
    const body = { tool_choice: { type: "function", function: { name: "get_weather" } } };
    const { choices } = await answered(`${OSLO}${NL}${OSLO}`, body);
    expect([callsOf(choices[0]!)?.length, choices[0]!.finish_reason]).toEqual([1, "stop"]);
    expect(tagOf()).toContain("get_weather");
    expect(tagOf()).not.toContain("get_time");
  });

  test.each(["auto", "required"])("allowed_tools (%s) hides the others from the model", async (mode) => {
    const tools = [{ type: "function", function: { name: "get_time" } }];
    const { choices } = await answered(written("get_time", {}), {
      tool_choice: { type: "allowed_tools", allowed_tools: { mode, tools } },
    });
    expect(callsOf(choices[0]!)).toEqual([["get_time", "{}"]]);
    const prompt = decodeAll([...gateway.engine.calls[0]!.request.tokenIds], false);
    expect([prompt.includes("get_time"), prompt.includes("get_weather")]).toEqual([true, false]);
    expect(tagOf() === undefined).toBe(mode === "auto");
  });

  test("where the family has no format to force, it is JSON that is forced, and read", async () => {
    const read = async (text: string, tool_choice: unknown) => {
      await gateway?.stop();
      gateway = qwenGateway((call) => play([text], call), { parsers: { reasoning: undefined, tool: undefined } });
      const { choices } = await askAllWays(gateway, { tool_choice });
      expect(gateway.engine.calls[0]?.request.sampling.constraint?.kind).toBe("json_schema");
      return choices[0]!;
    };
    const listed = await read('[{"name": "get_weather", "parameters": {"city": "Oslo"}}]', "required");
    expect([callsOf(listed), listed.finish_reason]).toEqual([[["get_weather", '{"city": "Oslo"}']], "tool_calls"]);
    const named = await read('{"city": "Oslo"}', { type: "function", function: { name: "get_weather" } });
    expect([callsOf(named), named.finish_reason]).toEqual([[["get_weather", '{"city": "Oslo"}']], "stop"]);
  });
});

test("results of tools are in the next prompt", async () => {
  const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } };
  const messages = [
    ...ask.messages,
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: "4 degrees" },
  ];
  const { choices } = await answered("Cold.", { messages });
  expect([choices[0]!.message.content, choices[0]!.finish_reason]).toEqual(["Cold.", "stop"]);
  const prompt = decodeAll([...gateway.engine.calls[0]!.request.tokenIds], false);
  expect(prompt).toContain(
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>',
  );
  expect(prompt).toContain("<tool_response>\n4 degrees\n</tool_response>");
  expect(prompt).toContain(JSON.stringify(CLOCK.function.name));
});

test.each([
  [{ tool_choice: "sometimes" }, "tool_choice"],
  [{ tool_choice: { type: "function", function: { name: "nobody" } } }, "tool_choice"],
  [{ tools: [], tool_choice: "required" }, "tool_choice"],
  [{ tools: [{ type: "function" }] }, "tools[0].function"],
  [{ tools: [{ type: "function", function: { name: "a b" } }] }, "tools[0].function.name"],
  [{ tools: [{ type: "web_search" }] }, "tools[0].type"],
  [{ tool_choice: "required", regex: "a+" }, "tool_choice"],
  [{ messages: [{ role: "user", content: "x", tool_calls: [{ function: { name: "f" } }] }] }, "messages[0].tool_calls"],
])("%j is refused", async (body, param) => {
  await gateway?.stop();
  gateway = qwenGateway((call) => play(["x"], call));
  for (const stream of [false, true]) {
    const response = await gateway.post({ ...ask, ...body, stream });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param, type: expect.any(String) } });
  }
  expect(gateway.engine.calls).toEqual([]);
});
