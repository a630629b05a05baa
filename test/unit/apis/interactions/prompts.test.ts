/** What of a request the model is told: by the prompts that the engine gets. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Gateway, MODEL } from "../../server/gateway.ts";
import { play } from "../../server/tool-chat.ts";
import { answers, CLOCK, interactionsGateway, post, promptOf, refusal, streamed, WEATHER, whole } from "./http.ts";

let gateway: Gateway;
beforeEach(() => {
  gateway = interactionsGateway((call) => play(["<think>\nHm.\n</think>\n\nFine."], call));
});
afterEach(() => gateway.stop());

async function prompted(body: object): Promise<string> {
  await whole(gateway, body);
  return promptOf(gateway.engine.calls.at(-1)!);
}

const turn = (role: string, text: string) => `<|im_start|>${role}\n${text}<|im_end|>\n`;
const ANSWER = "<|im_start|>assistant\n";
const text = (said: string) => ({ type: "text", text: said });
const said = (words: string) => ({ type: "user_input", content: [text(words)] });
const CALL = { type: "function_call", id: "call_1", name: "get_weather", arguments: { city: "Oslo" } };
const written = (args: string) => `<tool_call>\n{"name": "get_weather", "arguments": ${args}}\n</tool_call>`;

describe("an input", () => {
  test("as a text, a content, contents, or steps", async () => {
    const wanted = turn("user", "Hello") + ANSWER;
    for (const input of ["Hello", text("Hello"), [text("Hello")], [said("Hello")]])
      expect(await prompted({ input })).toBe(wanted);
  });

  test("behind an instruction", async () => {
    expect(await prompted({ input: "Hello", system_instruction: "Be brief." })).toBe(
      turn("system", "Be brief.") + turn("user", "Hello") + ANSWER,
    );
  });

  test("with former turns", async () => {
    const input = [said("Hello"), { type: "model_output", content: [text("Hi!")] }, said("How are you?")];
    expect(await prompted({ input })).toBe(
      turn("user", "Hello") + turn("assistant", "Hi!") + turn("user", "How are you?") + ANSWER,
    );
  });

  test("with documents of text", async () => {
    const data = Buffer.from("naïve notes").toString("base64");
    const prompt = await prompted({ input: [text("Sum up:"), { type: "document", mime_type: "text/plain", data }] });
    expect(prompt).toContain("Sum up:");
    expect(prompt).toContain("naïve notes");
  });

  test("with calls and their results, numbers as they were written", async () => {
    const body = `{"model": "${MODEL}", "tools": [${JSON.stringify(WEATHER)}], "input": [
      {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]},
      {"type": "function_call", "id": "a", "name": "get_weather", "arguments": {"z": 1.0, "city": "Oslo"}},
      {"type": "function_result", "call_id": "a", "result": {"t": 20.0,"n": 1}}]}`;
    expect((await post(gateway, body)).status).toBe(200);
    const prompt = promptOf(gateway.engine.calls.at(-1)!);
    expect(prompt).toContain(written('{"z": 1.0, "city": "Oslo"}'));
    expect(prompt).toContain('<tool_response>\n{"t": 20.0, "n": 1}\n</tool_response>');
  });

  test("with results in the order of their calls, also as contents of a user's step", async () => {
    const calls = [CALL, { ...CALL, id: "call_2", arguments: { city: "Rome" } }];
    const result = (call_id: string, value: unknown) => ({ type: "function_result", call_id, result: value });
    const step = {
      type: "user_input",
      content: [text("Go on."), result("call_2", "hot"), result("call_1", [text("cold")])],
    };
    const prompt = await prompted({ input: [said("Weather?"), ...calls, step], tools: [WEATHER] });
    expect(prompt.indexOf("cold")).toBeLessThan(prompt.indexOf("hot"));
    expect(prompt.indexOf("hot")).toBeLessThan(prompt.indexOf("Go on."));
    const error = { ...result("call_1", ""), is_error: true };
    expect(await prompted({ input: [said("Weather?"), CALL, error], tools: [WEATHER] })).toContain(
      "<tool_response>\nerror\n</tool_response>",
    );
  });

  test("with what Google's own tools did", async () => {
    const search = { type: "google_search_call", id: "s", arguments: { queries: ["Oslo"] } };
    const found = { type: "google_search_result", call_id: "s", result: [{ title: "Oslo" }] };
    const other = { type: "processing_call", id: "p", signature: "abc" };
    const prompt = await prompted({ input: [said("Search."), search, found, other] });
    expect(prompt).toContain('{"name": "google_search", "arguments": {"queries": ["Oslo"]}}');
    expect(prompt).toContain('[{"title": "Oslo"}]');
    expect(prompt).not.toContain("abc");
    expect(gateway.logged.join("")).toContain('"types":["processing_call"]');
  });
});

describe("thoughts", () => {
  const asked = (thought: object) => [
    said("Weather?"),
    thought,
    CALL,
    { type: "function_result", call_id: "call_1", result: "cold" },
  ];

  test("are told to the model again by their signature", async () => {
    for (const thinking_summaries of ["auto", "none"]) {
      const { steps } = await whole(gateway, { generation_config: { thinking_summaries } });
      const prompt = await prompted({ input: asked(steps[0]!), tools: [WEATHER] });
      expect(prompt).toContain("<think>\nHm.\n</think>");
    }
  });

  test("as a stream gives them, piece by piece", async () => {
    const { events } = await streamed(gateway, {});
    const deltas = events.flatMap((event) => (event.event_type === "step.delta" ? [event.delta] : []));
    const summary = deltas.flatMap((delta) => (delta.type === "thought_summary" ? [delta.content] : []));
    const [signed] = deltas.flatMap((delta) => (delta.type === "thought_signature" ? [delta.signature] : []));
    expect(summary.length).toBeGreaterThan(1);
    const thought = { type: "thought", summary, signature: signed };
    expect(await prompted({ input: asked(thought), tools: [WEATHER] })).toContain("<think>\nHm.\n</think>");
  });

  test("that were altered, or are another server's, are left out", async () => {
    const { steps } = await whole(gateway, {});
    const thought = steps[0] as { signature: string };
    for (const changed of [{ summary: [text("Lie.")] }, { signature: "CiQBcsjafRz" }, { signature: undefined }]) {
      const prompt = await prompted({ input: asked({ ...thought, ...changed }), tools: [WEATHER] });
      expect(prompt).not.toContain("Lie.");
      expect(prompt).not.toContain("Hm.");
    }
  });
});

describe("the interaction before", () => {
  test("comes before the input, with its thoughts; instructions and tools do not", async () => {
    await gateway.stop();
    gateway = interactionsGateway(
      answers({ cold: "So it is.", Weather: `<think>\nHm.\n</think>\n\n${written('{"city": "Oslo"}')}` }),
    );
    const first = await whole(gateway, { input: "Weather?", tools: [WEATHER], system_instruction: "Be brief." });
    const call = first.steps.at(-1) as { id: string };
    const previous = { previous_interaction_id: first.id };
    const second = await whole(gateway, {
      ...previous,
      input: [{ type: "function_result", call_id: call.id, result: "cold" }],
      tools: [WEATHER],
    });
    const prompt = promptOf(gateway.engine.calls.at(-1)!);
    expect(prompt).not.toContain("Be brief.");
    expect(prompt).toContain("Weather?");
    expect(prompt).toContain("<think>\nHm.\n</think>");
    expect(prompt).toContain("<tool_response>\ncold\n</tool_response>");
    expect(second).toMatchObject({ ...previous, steps: [{ content: [{ text: "So it is." }] }] });
    const third = await prompted({ previous_interaction_id: second.id, input: "Thanks." });
    expect(third).toContain("So it is.");
    expect(third).not.toContain("get_time");
    expect(third.endsWith(turn("user", "Thanks.") + ANSWER)).toBe(true);
  });

  test("must be there", async () => {
    const unknown = await refusal(gateway, { previous_interaction_id: "int_0" });
    expect(unknown).toMatchObject({ code: 404, status: "NOT_FOUND" });
    const { id } = await whole(gateway, {});
    await fetch(`${gateway.url}/v1beta/interactions/${id}`, { method: "DELETE" });
    expect((await refusal(gateway, { previous_interaction_id: id })).code).toBe(404);
  });
});

describe("what the engine is asked", () => {
  const sampling = async (body: object) => {
    await whole(gateway, body);
    return gateway.engine.calls.at(-1)!.request.sampling;
  };

  test("by generation_config, and by the engines' own fields in it or beside it", async () => {
    const config = { temperature: 0.5, top_p: 0.9, seed: 7, stop_sequences: ["X"], max_output_tokens: 20, top_k: 5 };
    expect(await sampling({ generation_config: config, min_p: 0.1 })).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      seed: 7,
      maxTokens: 20,
      topK: 5,
      minP: 0.1,
    });
    expect(await sampling({ generation_config: { max_output_tokens: 1_000_000 } })).toMatchObject({ stop: [] });
    const both = { seed: 3, frequency_penalty: 0.25, presence_penalty: -0.5, logit_bias: { 5: 2 } };
    const asked = { seed: 3, frequencyPenalty: 0.25, presencePenalty: -0.5, logitBias: new Map([[5, 2]]) };
    expect(await sampling(both)).toMatchObject(asked);
    expect(await sampling({ generation_config: both, seed: 4 })).toMatchObject(asked);
  });

  test("by the engines' constraints and prompt settings in generation_config", async () => {
    for (const [config, constraint] of [
      [{ regex: "a+" }, { kind: "regex", pattern: "a+" }],
      [{ ebnf: "root ::= x" }, { kind: "grammar", grammar: "root ::= x" }],
      [{ json_schema: {} }, { kind: "json_schema", schema: "{}" }],
      [{ guided_choice: ["a", "b"] }, { kind: "choice", choices: ["a", "b"] }],
      [{ structured_outputs: { regex: "b" } }, { kind: "regex", pattern: "b" }],
    ] as const)
      expect((await sampling({ generation_config: config })).constraint).toEqual(constraint as never);
    await whole(gateway, { generation_config: { truncate_prompt_tokens: 3 } });
    expect(gateway.engine.calls.at(-1)!.request.tokenIds).toHaveLength(3);
  });

  test("by template variables in generation_config or beside it", async () => {
    await gateway.stop();
    const template = { source: "{{ a }} {{ messages[0].content }}", specials: {} };
    gateway = interactionsGateway((call) => play(["Fine."], call), { template });
    for (const where of [
      { chat_template_kwargs: { a: 1.5 } },
      { generation_config: { chat_template_kwargs: { a: 1.5 } } },
    ])
      expect(await prompted(where)).toBe("1.5 Hi");
    const raw = `{"model": "${MODEL}", "input": "Hi", "generation_config": {"chat_template_kwargs": {"a": 2.0}}}`;
    expect((await post(gateway, raw)).status).toBe(200);
    expect(promptOf(gateway.engine.calls.at(-1)!)).toBe("2.0 Hi");
  });

  test("by a format", async () => {
    const schema = { type: "object", properties: { n: { type: "number" } } };
    const format = { type: "text", mime_type: "application/json", schema };
    const wanted = { kind: "json_schema", schema: JSON.stringify(schema) };
    for (const body of [
      { response_format: format },
      { response_format: [format] },
      { response_format: { type: "text", schema }, response_mime_type: "application/json" },
      { response_format: schema, response_mime_type: "application/json" },
    ])
      expect((await sampling(body)).constraint).toEqual(wanted as never);
    expect((await sampling({ response_mime_type: "application/json" })).constraint).toEqual({ kind: "json_object" });
    expect((await sampling({ response_format: { type: "text", mime_type: "text/plain" } })).constraint).toBeUndefined();
  });

  test("by the choice of tools", async () => {
    const tools = [WEATHER, CLOCK];
    const chosen = async (tool_choice: unknown) => {
      const { constraint } = await sampling({ tools, generation_config: { tool_choice } }).catch(() => ({
        constraint: undefined,
      }));
      return constraint?.kind;
    };
    expect(await chosen("auto")).toBeUndefined();
    expect(await chosen("none")).toBeUndefined();
    expect(await chosen("any")).toBe("structural_tag");
    expect(await chosen("validated")).toBe("structural_tag");
    expect(await chosen({ allowed_tools: { mode: "any", tools: ["get_time"] } })).toBe("structural_tag");
    const prompt = await prompted({
      tools,
      generation_config: { tool_choice: { allowed_tools: { tools: ["get_time"] } } },
    });
    expect(prompt).toContain("get_time");
    expect(prompt).not.toContain("get_weather");
  });

  test("a level of thinking", async () => {
    expect(await prompted({ generation_config: { thinking_level: "minimal" } })).toEndWith("<think>\n\n</think>\n\n");
    expect(await prompted({ generation_config: { thinking_level: "high" } })).toEndWith(ANSWER);
  });

  test("a model as it is called in lists", async () => {
    const { model } = await whole(gateway, { model: `models/${MODEL}` });
    expect(model).toBe(`models/${MODEL}`);
  });
});

describe("what is refused", () => {
  const image = { type: "image", data: "aaaa", mime_type: "image/png" };
  test.each([
    [{ model: undefined }, "'model'"],
    [{ agent: "deep-research" }, "exclude each other"],
    [{ model: undefined, agent: "deep-research" }, "no agents"],
    [{ input: undefined }, "'input'"],
    [{ input: "" }, "input must not be empty"],
    [{ input: [] }, "input must not be empty"],
    [{ input: [{ text: "x" }] }, "'input[0].type'"],
    [{ input: [text("x"), image] }, "input[1].type"],
    [{ input: [{ type: "user_input", content: [image] }] }, "input[0].content[0].type"],
    [{ input: [said("x"), { ...CALL, arguments: "{}" }] }, "input[1].arguments"],
    [{ input: [said("x"), { type: "function_result", call_id: "c", result: "x" }] }, "input[1].call_id"],
    [{ background: true, store: false }, "background"],
    [{ continuation_token: "x" }, "continuation_token"],
    [{ tools: [{ type: "google_search" }] }, "tools[0].type"],
    [{ tools: [{ type: "function" }] }, "'tools[0].name'"],
    [{ tools: [WEATHER, WEATHER] }, "another tool 'get_weather'"],
    [{ generation_config: { tool_choice: "any" } }, "needs tools"],
    [{ tools: [WEATHER], generation_config: { tool_choice: "some" } }, "tool_choice"],
    [{ tools: [WEATHER], generation_config: { tool_choice: { allowed_tools: { tools: ["x"] } } } }, "no tool 'x'"],
    [{ generation_config: { thinking_level: "deep" } }, "thinking_level"],
    [{ generation_config: { thinking_summaries: "all" } }, "thinking_summaries"],
    [{ generation_config: { temperature: 9 } }, "generation_config.temperature"],
    [{ generation_config: { candidate_count: 2 } }, "candidate_count"],
    [{ generation_config: { logprobs: 2 } }, "logprobs"],
    [{ input: [{ type: "text", text: 5 }] }, "input[0].text must be a string"],
    [{ input: [{ type: "text" }] }, "Missing required parameter: 'input[0].text'"],
    [{ input: [{ type: "thought", signature: "x" }] }, "input has nothing in it"],
    [{ response_format: { type: "text", schema: {} } }, "mime_type"],
    [{ response_format: { type: "image" } }, "'image'"],
    [{ response_modalities: ["text", "audio"] }, "'audio'"],
    [{ response_format: { type: "text", mime_type: "application/json" }, regex: "x" }, "Only one constraint"],
    [{ generation_config: { regex: "y" }, regex: "x" }, "Only one constraint"],
  ])("%j", async (body, message) => {
    const error = await refusal(gateway, body);
    expect(error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT" });
    expect(error.message).toContain(message);
    expect(gateway.engine.calls).toEqual([]);
  });

  test("an unknown model", async () => {
    expect(await refusal(gateway, { model: "models/x" })).toMatchObject({ code: 404, status: "NOT_FOUND" });
  });

  test("a body that is no JSON, and a method that there is not", async () => {
    expect(await refusal(gateway, "{")).toMatchObject({ code: 400 });
    const response = await fetch(`${gateway.url}/v1beta/interactions`);
    expect(response.status).toBe(405);
    expect(await response.json()).toMatchObject({ error: { code: 405 } });
  });

  test("null is nothing", async () => {
    const nothing = Object.fromEntries(
      [
        "system_instruction",
        "tools",
        "generation_config",
        "response_format",
        "previous_interaction_id",
        "store",
        "stream",
        "background",
        "labels",
      ].map((name) => [name, null]),
    );
    await whole(gateway, nothing);
  });
});
