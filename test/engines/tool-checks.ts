/**
 * Tool calls on a real engine: forced ones in every family's own format, strict tools, grammars of custom tools, and what happens where
 * the engine refuses a constraint. vLLM's HTTP server is no measure here: it has parsers of its own.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { structuralTagParsers } from "../../src/generation/tools/structural-tag.ts";
import type { CaseResult } from "./results.ts";
import { enginesFolder, startGateway } from "./servers.ts";
import { type ChatBody, readCalls, type ToolAnswer } from "./tool-answer.ts";

/** What must hold of an answer; gives what does not. */
type Expectation = (answer: ToolAnswer) => readonly string[];
type Check = readonly [name: string, body: ChatBody, expect: Expectation];

const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", enum: ["Oslo", "Łódź"] }, days: { type: "integer", enum: [1, 2, 3] } },
      required: ["city", "days"],
      additionalProperties: false,
    },
  },
};
const CLOCK = {
  type: "function",
  function: { name: "get_time", parameters: { type: "object", properties: {}, additionalProperties: false } },
};
const STRICT = { ...WEATHER, function: { ...WEATHER.function, strict: true } };
const NAMED = { type: "function", function: { name: "get_weather" } };
const ONE = { parallel_tool_calls: false };

/** xgrammar lets white space stand around the values of tagged formats, and a text is read as it stands. */
const isWeather = (value: unknown): boolean => {
  const { city, days, ...more } = value as { city?: unknown; days?: unknown };
  const isKnown = ["Oslo", "Łódź"].includes(String(city).trim()) && [1, 2, 3].includes(Number(days));
  return isKnown && Object.keys(more).length === 0;
};

/** Calls of each choice that satisfy their schemas, and nothing but calls. */
const calls =
  (finish: string, names = /^get_(weather|time)$/, most = 1): Expectation =>
  ({ choices }) =>
    choices.flatMap(({ content, calls: found, finishReason }, i) => {
      const faults = found
        .filter(
          ({ name, text }) =>
            !names.test(name) || (name === "get_weather" ? !isWeather(json(text)) : text.replace(/\s/g, "") !== "{}"),
        )
        .map(({ name, text }) => `choice ${i}: ${name} ${JSON.stringify(text)}`);
      if (found.length === 0 || found.length > most) faults.push(`choice ${i}: ${found.length} calls`);
      if (content !== null) faults.push(`choice ${i}: content ${JSON.stringify(content)}`);
      if (finishReason !== finish) faults.push(`choice ${i}: finish_reason ${finishReason}`);
      return faults;
    });

function json(text: string): unknown {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

const text: Expectation = ({ choices }) =>
  choices.flatMap(({ content, calls: found }) => (content && found.length === 0 ? [] : ["no plain text"]));

/** An answer in the format of `FORMAT`, and no call. */
const sum: Expectation = ({ choices }) =>
  choices
    .filter(({ content, calls: found }) => found.length > 0 || ![1, 2].includes(Number(sumOf(content))))
    .map((choice) => JSON.stringify(choice));

const sumOf = (content: string | null): unknown => (json(content ?? "") as { sum?: unknown }).sum;

const input =
  (pattern: RegExp): Expectation =>
  ({ choices }) =>
    choices.flatMap(({ calls: found }) =>
      found.length === 1 && pattern.test(found[0]!.text) ? [] : [`calls ${JSON.stringify(found)}`],
    );

const refused =
  (words: RegExp): Expectation =>
  ({ status, error }) =>
    status === 400 && words.test(error ?? "") ? [] : [`status ${status}, ${error}`];

const custom = (syntax: "lark" | "regex", definition: string) => ({
  tools: [{ type: "custom", custom: { name: "code", format: { type: "grammar", grammar: { syntax, definition } } } }],
  tool_choice: { type: "custom", custom: { name: "code" } },
});
const odd = (parameters: object) => [{ type: "function", function: { name: "odd", strict: true, parameters } }];
const IMPOSSIBLE = odd({
  type: "object",
  properties: { a: { type: "integer", minimum: 5, maximum: 1 } },
  required: ["a"],
});

const FORMAT = {
  type: "json_schema",
  json_schema: {
    name: "answer",
    schema: {
      type: "object",
      properties: { sum: { type: "integer", enum: [1, 2] } },
      required: ["sum"],
      additionalProperties: false,
    },
  },
};

/** Tokens of Qwen 3: `<tool_call>`, and `{"`, which an answer in JSON may begin with, `<think>`, `</think>`. */
const TOOL_CALL = 151657;
const OBJECT = 4913;
const THOUGHT = 151667;
const END_OF_THOUGHT = 151668;
const PATCH = 'start: "*** Begin Patch" LF hunk+ "*** End Patch"\nhunk: "+" /[a-z]{1,8}/ LF\n%import common.LF';
/** One of them is in every call for the weather, inside its first argument. */
const STOP = ["slo", "ódź"];

/** Of the random model, with Qwen 3's own parsers. */
const qwenChecks = (noSpace: Readonly<Record<string, number>>): readonly Check[] => [
  ["required, one call", { tool_choice: "required", ...ONE }, calls("tool_calls")],
  ["required", { tool_choice: "required" }, calls("tool_calls", undefined, 100)],
  ["named", { tool_choice: NAMED }, calls("stop", /^get_weather$/)],
  [
    "allowed",
    { tool_choice: { type: "allowed_tools", mode: "required", tools: [CLOCK] } },
    calls("tool_calls", /^get_time$/, 100),
  ],
  ["two choices of one call", { tool_choice: "required", ...ONE, n: 2 }, calls("tool_calls")],
  [
    "strict, and the model calls",
    { tools: [STRICT, CLOCK], ...ONE, logit_bias: { ...noSpace, [TOOL_CALL]: 100 } },
    calls("tool_calls"),
  ],
  ...[1, 2].flatMap((n): readonly Check[] => [
    [
      `beside a format, and the model calls, ${n}`,
      { response_format: FORMAT, n, tools: [STRICT, CLOCK], ...ONE, logit_bias: { ...noSpace, [TOOL_CALL]: 100 } },
      calls("tool_calls"),
    ],
    [
      `beside a format, and the model answers, ${n}`,
      { response_format: FORMAT, n, logit_bias: { ...noSpace, [OBJECT]: 100 } },
      sum,
    ],
  ]),
  [
    "beside a format, behind a thought",
    {
      response_format: FORMAT,
      chat_template_kwargs: {},
      logit_bias: { ...noSpace, [END_OF_THOUGHT]: 100, [THOUGHT]: 90, [OBJECT]: 50 },
    },
    sum,
  ],
  ["strict, and the model talks", { tools: [STRICT], max_tokens: 20 }, text],
  ["strict, with a schema that the engine refuses", { tools: IMPOSSIBLE, max_tokens: 20 }, text],
  [
    "required, with a schema that the engine refuses",
    { tools: IMPOSSIBLE, tool_choice: "required" },
    refused(/unsatisfiable/i),
  ],
  ["a regular expression", custom("regex", "[a-c]{3}-[0-9]{2}"), input(/^[a-c]{3}-[0-9]{2}$/)],
  ["a Lark grammar", custom("lark", PATCH), input(/^\*\*\* Begin Patch\n(\+[a-z]{1,8}\n)+\*\*\* End Patch$/)],
  ["a broken Lark grammar", custom("lark", "start: nobody"), refused(/nobody/)],
  ...[1, 2].map(
    (n): Check => [
      `a stop string inside the arguments, ${n === 1 ? "found by the gateway" : "found by the engine"}`,
      { tool_choice: NAMED, stop: STOP, n },
      ({ choices }) =>
        choices
          .filter(({ calls: found, finishReason }) => !/"(O|Ł)$/.test(found[0]?.text ?? "") || finishReason !== "stop")
          .map((choice) => JSON.stringify(choice)),
    ],
  ),
];

const realChecks: readonly Check[] = (["required", NAMED] as const).map((tool_choice) => [
  typeof tool_choice === "string" ? "required" : "named",
  { tool_choice, ...ONE, tools: [WEATHER], temperature: 0 },
  calls(typeof tool_choice === "string" ? "tool_calls" : "stop", /^get_weather$/),
]);

/** A bias against tokens of white space: JSON allows any number of them, and a random model takes them. */
function againstSpace(model: string): Record<string, number> {
  const file = JSON.parse(readFileSync(join(enginesFolder, model, "tokenizer.json"), "utf8")) as {
    model: { vocab: Record<string, number> };
  };
  const blank = Object.entries(file.model.vocab).filter(([token]) => /^[ĠĊĉč]+$/.test(token));
  return Object.fromEntries(blank.map(([, id]) => [id, -100]));
}

async function run(
  group: string,
  engineUrl: string,
  parsers: readonly string[],
  common: ChatBody,
  checks: readonly Check[],
  only: string,
): Promise<CaseResult[]> {
  const wanted = checks.filter(([name]) => `tools, ${group}: ${name}`.includes(only));
  if (wanted.length === 0) return [];
  const gateway = await startGateway(engineUrl, [], 60_000, parsers);
  try {
    const results: CaseResult[] = [];
    for (const [name, body, expect] of wanted) {
      const asked = { ...common, ...body };
      const whole = await readCalls(gateway.url, asked, false);
      const streamed = await readCalls(gateway.url, asked, true);
      const faults = [...expect(whole)];
      if (JSON.stringify(whole) !== JSON.stringify(streamed))
        faults.push(`whole ${JSON.stringify(whole)}, streamed ${JSON.stringify(streamed)}`);
      results.push({ name: `tools, ${group}: ${name}`, faults, note: undefined });
    }
    return results;
  } finally {
    await gateway.stop();
  }
}

/** Everything of this file for one model. `only`: cases whose name has this text. */
export async function toolChecks(model: "tiny" | "smollm2", engineUrl: string, only: string): Promise<CaseResult[]> {
  const messages = [{ role: "user", content: "What is the weather in Oslo in the next two days?" }];
  const common = { model, messages, tools: [WEATHER, CLOCK], max_tokens: 600, seed: 5 };
  const parsers = (tool: string) => ["--tool-call-parser", tool, "--reasoning-parser", "none"];
  if (model === "smollm2") return run("SmolLM2", engineUrl, parsers("hermes"), common, realChecks, only);
  const logit_bias = againstSpace(model);
  const quiet = { ...common, temperature: 1, logit_bias, chat_template_kwargs: { enable_thinking: false } };
  const results = await run("Qwen 3", engineUrl, [], quiet, qwenChecks(logit_bias), only);
  for (const tool of structuralTagParsers()) {
    const check: Check = ["required, one call", { tool_choice: "required", ...ONE }, calls("tool_calls")];
    results.push(...(await run(tool, engineUrl, parsers(tool), quiet, [check], only)));
  }
  return results;
}
