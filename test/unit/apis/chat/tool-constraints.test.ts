/** What of a request's tools becomes a constraint of the engine, and what an engine that refuses it is asked instead. */
import { afterEach, describe, expect, test } from "bun:test";
import { type Constraint, EngineError } from "../../../../src/engines/engine.ts";
import { decodeAll, encode } from "../../generation/demo-tokenizer.ts";
import type { ScriptedCall } from "../../generation/scripted-engine.ts";
import type { Gateway } from "../../server/gateway.ts";
import { ask, askAllWays, CLOCK, OSLO, play, qwenGateway, WEATHER, written } from "../../server/tool-chat.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

const STRICT = { ...WEATHER, function: { ...WEATHER.function, strict: true } };
const constraints = () => gateway.engine.calls.map(({ request }) => request.sampling.constraint);
const formatOf = (constraint: Constraint | undefined) => {
  if (constraint?.kind !== "structural_tag") throw new Error(`not a tag: ${constraint?.kind}`);
  return (JSON.parse(constraint.tag) as { format: { type: string; elements: { type: string }[] } }).format;
};
const start = (script: (call: ScriptedCall) => void) => {
  gateway = qwenGateway(script);
};

describe("strict tools under tool_choice auto", () => {
  test("the engine holds calls to the schema, and lets all else pass", async () => {
    start((call) => play([OSLO], call));
    const { choices } = await askAllWays(gateway, { tools: [STRICT, CLOCK] });
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }] },
    });
    for (const constraint of constraints()) {
      const { elements } = formatOf(constraint);
      expect(elements.at(-1)).toMatchObject({ type: "triggered_tags", triggers: ["<tool_call>"], at_least_one: false });
      expect(JSON.stringify(elements.at(-1))).toContain(JSON.stringify(WEATHER.function.parameters));
    }
  });

  test("markers of calls may come letter by letter, as the engine's grammar knows letters only; those of reasoning are tokens", async () => {
    start((call) => {
      const [, rest = ""] = OSLO.split("<tool_call>");
      const spelled = (marker: string) => [...encode(marker.slice(0, 3)), ...encode(marker.slice(3))];
      call.chunk([...spelled("<think>"), ...encode(" is a word. "), ...spelled("<tool_call>"), ...encode(rest)]).idle();
      call.finish({ completionTokens: 30 }).end();
    });
    const read = async (body: object) => {
      const answer = (await (await gateway.post({ ...ask, ...body })).json()) as { choices: { message: unknown }[] };
      return answer.choices[0]!.message;
    };
    const told = "<think> is a word. ";
    const called = [{ function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }];
    expect(await read({ tools: [STRICT] })).toMatchObject({ content: told, tool_calls: called });
    // without a grammar, text about markers is text
    expect(await read({})).toMatchObject({ role: "assistant", content: `${told}${OSLO}` });
    // a forced answer has no text about markers
    expect(await read({ tool_choice: "required" })).toMatchObject({
      reasoning_content: expect.stringContaining("is a word"),
    });
  });

  test("without one nothing changes; beside a format of the answer the model may do either", async () => {
    start((call) => play(["Cold."], call));
    await gateway.post({ ...ask, tools: [{ ...WEATHER, function: { ...WEATHER.function, strict: false } }] });
    await gateway.post({ ...ask, tools: [STRICT], tool_choice: "none" });
    await gateway.post({ ...ask, tools: [STRICT], response_format: { type: "json_object" } });
    await gateway.post({ ...ask, tools: [STRICT], response_format: { type: "json_object" }, tool_choice: "none" });
    expect(constraints().map((each) => each?.kind)).toEqual([undefined, undefined, "structural_tag", "json_object"]);
    expect(constraints()[2]).toMatchObject({ tag: expect.stringContaining('"type":"or"') });
  });
});

describe("an engine that refuses the tag", () => {
  const refusing = (answer: string, times = 1) => {
    let refused = 0;
    start((call) => {
      if (call.request.sampling.constraint?.kind === "structural_tag" && refused++ < times)
        call.end(new EngineError("invalid", "Invalid structural tag specification."));
      else play([answer], call);
    });
  };

  test.each([false, true])("strict: it is asked without (stream %p)", async (stream) => {
    refusing(OSLO);
    const response = await gateway.post({ ...ask, tools: [STRICT], stream });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("get_weather");
    expect(constraints().map((each) => each?.kind)).toEqual(["structural_tag", undefined]);
    expect(gateway.logged.join()).toContain("Invalid structural tag specification.");
    expect([gateway.scopes.size, gateway.board.running(gateway.slot)]).toEqual([0, 0]);
  });

  test.each<[unknown, string]>([
    ["required", '[{"name": "get_weather", "parameters": {"city": "Oslo"}}]'],
    [{ type: "function", function: { name: "get_weather" } }, '{"city": "Oslo"}'],
  ])("forced by %j: it is asked for JSON", async (tool_choice, text) => {
    refusing(text, Number.POSITIVE_INFINITY);
    const { choices } = await askAllWays(gateway, { tool_choice });
    expect(choices[0]!.message.tool_calls?.map((call) => call.function)).toEqual([
      { name: "get_weather", arguments: '{"city": "Oslo"}' },
    ]);
    expect(constraints().map((each) => each?.kind)).toEqual(Array(4).fill(["structural_tag", "json_schema"]).flat());
  });

  test("refused again, or with no other way: the client is told", async () => {
    start((call) => call.end(new EngineError("invalid", `no ${call.request.sampling.constraint?.kind}`)));
    const told = async (body: object) => {
      const response = await gateway.post({ ...ask, ...body });
      return [response.status, ((await response.json()) as { error: { message: string } }).error.message];
    };
    expect(await told({ tool_choice: "required" })).toEqual([400, "no json_schema"]);
    expect(await told({ tools: [STRICT] })).toEqual([400, "no undefined"]);
    expect(await told({})).toEqual([400, "no undefined"]);
    expect(gateway.engine.calls.length).toBe(5);
  });

  test("other failures, and one behind the first tokens, are final", async () => {
    start((call) => call.end(new EngineError("unavailable", "gone")));
    expect((await gateway.post({ ...ask, tools: [STRICT] })).status).toBe(503);
    await gateway.stop();
    start((call) => {
      call.chunk(encode("Co")).idle();
      call.end(new EngineError("invalid", "late"));
    });
    const response = await gateway.post({ ...ask, tools: [STRICT], stream: true });
    expect(await response.text()).toContain("late");
    expect(gateway.engine.calls.length).toBe(1);
  });
});

describe("several choices of one call each", () => {
  test.each([false, true])(
    "each ends behind its call, and the engine with the last of them (stream %p)",
    async (stream) => {
      const seen: number[] = [];
      start((call) => {
        call.chunk(encode(`${OSLO}\nand so on`), { index: 0 }).idle();
        seen.push(call.cancelled);
        call.chunk(encode("and on"), { index: 0 }).idle();
        call.chunk(encode(OSLO), { index: 1 }).idle();
        seen.push(call.cancelled);
      });
      const response = await gateway.post({ ...ask, n: 2, parallel_tool_calls: false, stream });
      const text = await response.text();
      expect(text).not.toContain("and");
      expect(text.match(/"finish_reason":"tool_calls"/g)?.length).toBe(2);
      expect(seen).toEqual([0, 1]);
      expect(gateway.engine.calls[0]!.request.stream).toBe(true);
    },
  );
});

describe("stop strings inside the arguments of a call", () => {
  const CALL = written("get_weather", '{"city": "Oslo", "unit": "C"}');

  test("end the answer there, as they do on an engine: the call stays unfinished, and nothing before is lost", async () => {
    start((call) => play([`On it. ${CALL} done`], call));
    const { choices } = await askAllWays(gateway, { stop: ['lo", "un'] });
    expect(choices[0]).toMatchObject({
      finish_reason: "stop",
      matched_stop: 'lo", "un',
      message: {
        content: "On it. ",
        tool_calls: [{ function: { name: "get_weather", arguments: '{"city": "Os' } }],
      },
    });
  });

  test("behind a call leave it whole", async () => {
    start((call) => play([`${CALL} done`], call));
    const { choices } = await askAllWays(gateway, { stop: ["done"] });
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ function: { arguments: '{"city": "Oslo", "unit": "C"}' } }] },
    });
  });
});

describe("custom tools with a grammar", () => {
  const PATCH = '*** Begin Patch\n+ "naïve" \\ 👩‍👩‍👧\n*** End Patch\n';
  const LARK = 'start: "*** Begin Patch" LF hunk+\nhunk: "+" /(.*)/ LF\n%import common.LF';
  const custom = (name: string, format: object) => ({
    type: "custom",
    custom: { name, description: "Edits files.", format },
  });
  const lark = custom("apply_patch", { type: "grammar", syntax: "lark", definition: LARK });
  const regex = custom("dial", { type: "grammar", grammar: { syntax: "regex", definition: "[0-9]{3}-[0-9]{3}" } });
  const named = (name: string) => ({ type: "custom", custom: { name } });
  const prompt = () => decodeAll([...gateway.engine.calls[0]!.request.tokenIds], false);

  test("auto: the model is told the grammar, and its text is passed on as it is", async () => {
    start((call) => play([written("apply_patch", { input: PATCH })], call));
    const { choices } = await askAllWays(gateway, { tools: [lark, CLOCK] });
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ type: "custom", custom: { name: "apply_patch", input: PATCH } }] },
    });
    expect(prompt()).toContain(
      JSON.stringify(`Edits files.\n\nThe input must follow this Lark grammar:\n${LARK}`).slice(1, -1),
    );
    expect(constraints()).toEqual(Array(4).fill(undefined));
  });

  test("named: the engine holds the text to the grammar, and all of the answer is the text", async () => {
    start((call) => play([PATCH], call));
    const { choices } = await askAllWays(gateway, { tools: [lark, CLOCK], tool_choice: named("apply_patch") });
    expect(choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: null, tool_calls: [{ type: "custom", custom: { name: "apply_patch", input: PATCH } }] },
    });
    expect(constraints()).toEqual(Array(4).fill({ kind: "grammar", grammar: LARK }));
  });

  test("named, by a regular expression: reasoning may come before", async () => {
    start((call) => play(["<think>\nWhom?\n</think>555-123"], call));
    const { choices } = await askAllWays(gateway, { tools: [regex], tool_choice: named("dial") });
    expect(choices[0]!.message).toMatchObject({
      content: null,
      reasoning_content: "\nWhom?\n",
      tool_calls: [{ custom: { name: "dial", input: "555-123" } }],
    });
    const { elements } = formatOf(constraints()[0]);
    expect(elements.at(-1)).toEqual({ type: "regex", pattern: "[0-9]{3}-[0-9]{3}" } as never);
  });
});

test("an engine that lets reasoning pass by itself is given the bare calls", async () => {
  start((call) => play([OSLO], call));
  const types = async (waitsForReasoning: boolean | undefined) => {
    const { snapshot, fleet } = gateway;
    fleet.apply({ ...snapshot, workers: snapshot.workers.map((worker) => ({ ...worker, waitsForReasoning })) });
    await gateway.post({ ...ask, tool_choice: "required" });
    return formatOf(constraints().at(-1)).elements.map(({ type }) => type);
  };
  expect(await types(true)).toEqual(["tags_with_separator"]);
  for (const waits of [false, undefined]) expect(await types(waits)).toEqual(["optional", "tags_with_separator"]);
});
