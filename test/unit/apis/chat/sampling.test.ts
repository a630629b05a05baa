import { describe, expect, test } from "bun:test";
import { chatConstraint } from "../../../../src/apis/chat/constraint.ts";
import { chatSampling } from "../../../../src/apis/chat/sampling.ts";
import { chatRequest } from "../../../../src/apis/chat/schema.ts";
import type { SamplingContext } from "../../../../src/apis/shared/sampling.ts";
import type { Constraint, SamplingParams } from "../../../../src/engines/engine.ts";
import { GatewayError } from "../../../../src/errors.ts";
import { checked } from "./requests.ts";

const MODEL: SamplingContext = { contextLength: 1000, vocabSize: 500, defaults: {} };

const sample = (fields: Record<string, unknown>, model = MODEL, promptTokens = 100): SamplingParams => {
  const body = checked(fields);
  return chatSampling(body, promptTokens, model, chatConstraint(body));
};

function refusal(
  fields: Record<string, unknown>,
  model = MODEL,
): { status: number; param: string | undefined; code: string } {
  try {
    sample(fields, model);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { status: error.status, param: error.param, code: error.code };
  }
  throw new Error(`${JSON.stringify(fields)} was taken`);
}

const BARE = sample({});

test("a bare request: neutral values, and all the room there is", () => {
  expect(BARE).toEqual({
    temperature: 1,
    topP: 1,
    topK: 0,
    minP: 0,
    repetitionPenalty: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    maxTokens: 900,
    minTokens: 0,
    stop: [],
    stopTokenIds: [],
    ignoreEos: false,
    skipSpecialTokens: true,
    spacesBetweenSpecialTokens: true,
    includeStopStrInOutput: false,
    n: 1,
  });
});

/** Fields that reach the engine, with a value and what becomes of it. */
const MAPPED: [string, Record<string, unknown>, Partial<SamplingParams>][] = [
  ["max_completion_tokens", { max_completion_tokens: 7 }, { maxTokens: 7 }],
  ["max_tokens", { max_tokens: 8 }, { maxTokens: 8 }],
  ["n", { n: 3 }, { n: 3 }],
  ["temperature", { temperature: 0 }, { temperature: 0 }],
  ["top_p", { top_p: 0.5 }, { topP: 0.5 }],
  ["frequency_penalty", { frequency_penalty: -1.5 }, { frequencyPenalty: -1.5 }],
  ["presence_penalty", { presence_penalty: 1.5 }, { presencePenalty: 1.5 }],
  ["stop", { stop: "a" }, { stop: ["a"] }],
  ["stop", { stop: ["a", "b", "c", "d", "e"] }, { stop: ["a", "b", "c", "d", "e"] }],
  ["seed", { seed: 0 }, { seed: 0 }],
  ["sampling_seed", { sampling_seed: 5 }, { seed: 5 }],
  [
    "logit_bias",
    { logit_bias: { "3": -100, "499": 1.5 } },
    {
      logitBias: new Map([
        [3, -100],
        [499, 1.5],
      ]),
    },
  ],
  ["logprobs", { logprobs: true }, { logprobs: 0 }],
  ["top_logprobs", { logprobs: true, top_logprobs: 20 }, { logprobs: 20 }],
  ["response_format", { response_format: { type: "json_object" } }, { constraint: { kind: "json_object" } }],
  ["top_k", { top_k: 40 }, { topK: 40 }],
  ["top_k", { top_k: -1 }, { topK: 0 }],
  ["min_p", { min_p: 0.1 }, { minP: 0.1 }],
  ["repetition_penalty", { repetition_penalty: 1.2 }, { repetitionPenalty: 1.2 }],
  ["min_tokens", { min_tokens: 3 }, { minTokens: 3 }],
  ["stop_token_ids", { stop_token_ids: [1, 2] }, { stopTokenIds: [1, 2] }],
  ["ignore_eos", { ignore_eos: true }, { ignoreEos: true }],
  ["skip_special_tokens", { skip_special_tokens: false }, { skipSpecialTokens: false }],
  ["spaces_between_special_tokens", { spaces_between_special_tokens: false }, { spacesBetweenSpecialTokens: false }],
  ["include_stop_str_in_output", { include_stop_str_in_output: true }, { includeStopStrInOutput: true }],
  ["no_stop_trim", { no_stop_trim: true }, { includeStopStrInOutput: true }],
  ["regex", { regex: "a+" }, { constraint: { kind: "regex", pattern: "a+" } }],
  ["ebnf", { ebnf: "root ::= 'a'" }, { constraint: { kind: "grammar", grammar: "root ::= 'a'" } }],
  [
    "json_schema",
    { json_schema: { type: "object" } },
    { constraint: { kind: "json_schema", schema: '{"type":"object"}' } },
  ],
  [
    "json_schema",
    { json_schema: '{"type":"array"}' },
    { constraint: { kind: "json_schema", schema: '{"type":"array"}' } },
  ],
  ["structured_outputs", { structured_outputs: { regex: "a" } }, { constraint: { kind: "regex", pattern: "a" } }],
  ["guided_json", { guided_json: { a: 1 } }, { constraint: { kind: "json_schema", schema: '{"a":1}' } }],
  ["guided_regex", { guided_regex: "b" }, { constraint: { kind: "regex", pattern: "b" } }],
  ["guided_choice", { guided_choice: ["x", "y"] }, { constraint: { kind: "choice", choices: ["x", "y"] } }],
  ["guided_grammar", { guided_grammar: "g" }, { constraint: { kind: "grammar", grammar: "g" } }],
];

/** Fields that would change the answer and that nothing here can carry. */
const REFUSED: [string, unknown][] = [
  ["modalities", ["text", "audio"]],
  ["audio", { voice: "v", format: "mp3" }],
  ["chat_template", "{{ messages }}"],
  ["echo", true],
];

/** Fields that are used before sampling (prompt, routing, drawing); their own tests show it. */
const ELSEWHERE = [
  "model",
  "messages",
  "stream",
  "stream_options",
  "return_token_ids",
  "return_tokens_as_token_ids",
  "chat_template_kwargs",
  "add_generation_prompt",
  "continue_final_message",
  "documents",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call",
  "reasoning_effort",
  "separate_reasoning",
  "include_reasoning",
  "rid",
  "request_id",
  "data_parallel_rank",
  "routed_dp_rank",
  "truncate_prompt_tokens",
];

describe("fields", () => {
  test.each(MAPPED)("%s: %j", (_, fields, expected) => {
    expect(sample(fields)).toEqual({ ...BARE, ...expected });
  });

  test.each(REFUSED)("%s is refused", (name, value) => {
    expect(refusal({ [name]: value })).toMatchObject({ status: 400, param: name });
  });

  test("every field of the schema is in one of the tables", () => {
    const known = new Set([...MAPPED, ...REFUSED].map(([name]) => name));
    for (const name of ELSEWHERE) known.add(name);
    expect(Object.keys(chatRequest.properties).filter((name) => !known.has(name))).toEqual([]);
  });

  test.each([
    "length_penalty",
    "use_beam_search",
    "best_of",
    "bad_words",
    "allowed_token_ids",
    "stop_regex",
    "repetition_detection",
    "thinking_token_budget",
    "lora_path",
    "cache_salt",
    "extra_key",
    "vllm_xargs",
    "custom_params",
    "custom_logit_processor",
    "prompt_logprobs",
    "logprob_token_ids",
    "return_hidden_states",
    "return_routed_experts",
    "add_special_tokens",
  ])("%s, which the schema does not list, is refused and not ignored", (name) => {
    expect(refusal({ [name]: 2 })).toMatchObject({ status: 400, param: name, code: "unsupported_parameter" });
    expect(sample({ [name]: null })).toEqual(BARE);
  });

  test("null is the same as absent, for every optional field", () => {
    for (const name of Object.keys(chatRequest.properties)) {
      if (name === "model" || name === "messages") continue;
      expect({ name, ...sample({ [name]: null }) }).toEqual({ name, ...BARE });
    }
  });

  test("unknown fields and those that change nothing are ignored", () => {
    const fields = {
      user: "u",
      metadata: { a: 1 },
      store: true,
      service_tier: "auto",
      verbosity: "low",
      prediction: {},
      safety_identifier: "s",
      prompt_cache_key: "k",
      foo: { bar: [1] },
      parallel_tool_calls: false,
      tools: [],
      tool_choice: "none",
      functions: [],
      modalities: ["text"],
      best_of: 1,
      length_penalty: 1,
      use_beam_search: false,
      bad_words: [],
    };
    expect(sample(fields)).toEqual(BARE);
  });

  test("the newer name of the limit counts", () => {
    expect(sample({ max_completion_tokens: 7, max_tokens: 8 }).maxTokens).toBe(7);
    expect(sample({ max_completion_tokens: null, max_tokens: 8 }).maxTokens).toBe(8);
  });

  test("the model's own defaults fill in for absent and null, not for zero", () => {
    const model = {
      ...MODEL,
      defaults: { temperature: 0.6, top_p: 0.9, top_k: 20, min_p: 0.05, repetition_penalty: 1.1 },
    };
    expect(sample({ top_p: null }, model)).toEqual({
      ...BARE,
      temperature: 0.6,
      topP: 0.9,
      topK: 20,
      minP: 0.05,
      repetitionPenalty: 1.1,
    });
    expect(sample({ temperature: 0, top_k: 0, min_p: 0 }, model)).toMatchObject({ temperature: 0, topK: 0, minP: 0 });
  });
});

describe("400", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["no messages", { messages: [] }, "messages"],
    ["messages missing", { messages: undefined }, "messages"],
    ["model missing", { model: undefined }, "model"],
    ["model empty", { model: "" }, "model"],
    ["top_logprobs without logprobs", { top_logprobs: 2 }, "top_logprobs"],
    ["top_logprobs with logprobs false", { top_logprobs: 2, logprobs: false }, "top_logprobs"],
    ["top_logprobs too many", { logprobs: true, top_logprobs: 21 }, "top_logprobs"],
    ["min_tokens above max", { min_tokens: 9, max_tokens: 8 }, "min_tokens"],
    ["min_tokens above the room", { min_tokens: 901 }, "min_tokens"],
    ["temperature high", { temperature: 2.1 }, "temperature"],
    ["temperature low", { temperature: -0.1 }, "temperature"],
    ["top_p zero", { top_p: 0 }, "top_p"],
    ["top_p high", { top_p: 1.01 }, "top_p"],
    ["top_k low", { top_k: -2 }, "top_k"],
    ["min_p high", { min_p: 1.5 }, "min_p"],
    ["repetition_penalty zero", { repetition_penalty: 0 }, "repetition_penalty"],
    ["frequency_penalty", { frequency_penalty: 2.5 }, "frequency_penalty"],
    ["presence_penalty", { presence_penalty: -3 }, "presence_penalty"],
    ["n zero", { n: 0 }, "n"],
    ["n a fraction", { n: 1.5 }, "n"],
    ["max_tokens zero", { max_tokens: 0 }, "max_tokens"],
    ["stop empty", { stop: "" }, "stop"],
    ["stop with an empty one", { stop: ["a", ""] }, "stop[1]"],
    ["stop of numbers", { stop: [1] }, "stop[0]"],
    ["a string where a number goes", { temperature: "1" }, "temperature"],
    ["a bias key that is no id", { logit_bias: { hello: 1 } }, "logit_bias"],
    ["a bias key with a sign", { logit_bias: { "-1": 1 } }, "logit_bias"],
    ["a bias beyond the vocabulary", { logit_bias: { "500": 1 } }, "logit_bias"],
    ["a bias too strong", { logit_bias: { "5": 101 } }, "logit_bias[5]"],
    ["stop_token_ids negative", { stop_token_ids: [-1] }, "stop_token_ids[0]"],
    ["stop_token_ids beyond 32 bits", { stop_token_ids: [2 ** 32 + 5] }, "stop_token_ids[0]"],
    ["top_k beyond 32 bits", { top_k: 2 ** 32 + 5 }, "top_k"],
    ["stream_options not an object", { stream: true, stream_options: true }, "stream_options"],
    ["message without role", { messages: [{ content: "x" }] }, "messages[0].role"],
    ["content of a wrong type", { messages: [{ role: "user", content: 5 }] }, "messages[0].content"],
    ["a part without type", { messages: [{ role: "user", content: [{ text: "x" }] }] }, "messages[0].content[0].type"],
  ])("%s", (_, fields, param) => {
    expect(refusal(fields)).toMatchObject({ status: 400, param });
  });

  test("prompt and answer beyond the context: the code that clients know", () => {
    expect(refusal({ max_tokens: 901 })).toEqual({ status: 400, param: "messages", code: "context_length_exceeded" });
    expect(() => sample({}, MODEL, 1000)).toThrow(/maximum context length is 1000 tokens/);
    expect(sample({ max_tokens: 900 }).maxTokens).toBe(900);
    expect(sample({}, MODEL, 999).maxTokens).toBe(1);
  });

  test("an unknown context leaves the length to the engine", () => {
    const model = { ...MODEL, contextLength: 0 };
    expect(sample({}, model)).not.toHaveProperty("maxTokens");
    expect(sample({ max_tokens: 5000 }, model).maxTokens).toBe(5000);
  });
});

describe("constraints", () => {
  const constraint = (fields: Record<string, unknown>): Constraint | undefined => sample(fields).constraint;
  const format = (response_format: unknown) => ({ response_format });

  test.each<[Record<string, unknown>, Constraint | undefined]>([
    [format({ type: "text" }), undefined],
    [format({ type: "json_object" }), { kind: "json_object" }],
    [
      format({ type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } }),
      { kind: "json_schema", schema: '{"type":"object"}' },
    ],
    [
      format({ type: "json_schema", json_schema: { name: "n", schema: {}, strict: true } }),
      { kind: "json_schema", schema: "{}" },
    ],
    [
      format({ type: "json_schema", json_schema: { name: "n", schema: true } }),
      { kind: "json_schema", schema: "true" },
    ],
    [format({ type: "json_schema", json_schema: { name: "n" } }), { kind: "json_object" }],
    [
      format({ type: "structural_tag", structures: [{ begin: "<f>", schema: {}, end: "</f>" }], triggers: ["<f>"] }),
      {
        kind: "structural_tag",
        tag: '{"type":"structural_tag","structures":[{"begin":"<f>","schema":{},"end":"</f>"}],"triggers":["<f>"]}',
      },
    ],
    [
      format({ type: "structural_tag", format: { type: "any_text" } }),
      { kind: "structural_tag", tag: '{"type":"structural_tag","format":{"type":"any_text"}}' },
    ],
    [{ structured_outputs: { json: { a: 1 } } }, { kind: "json_schema", schema: '{"a":1}' }],
    [{ structured_outputs: { json: '{"a":1}' } }, { kind: "json_schema", schema: '{"a":1}' }],
    [{ structured_outputs: { json_object: true } }, { kind: "json_object" }],
    [{ structured_outputs: { json_object: false, regex: "a" } }, { kind: "regex", pattern: "a" }],
    [{ structured_outputs: { regex: "a", json: null } }, { kind: "regex", pattern: "a" }],
    [{ structured_outputs: { grammar: "g" } }, { kind: "grammar", grammar: "g" }],
    [{ structured_outputs: { choice: ["a", "b"] } }, { kind: "choice", choices: ["a", "b"] }],
    [{ structured_outputs: { structural_tag: '{"type":"x"}' } }, { kind: "structural_tag", tag: '{"type":"x"}' }],
    [{ structured_outputs: { structural_tag: { type: "x" } } }, { kind: "structural_tag", tag: '{"type":"x"}' }],
    [
      { response_format: { type: "text" }, regex: "a" },
      { kind: "regex", pattern: "a" },
    ],
  ])("%j", (fields, expected) => {
    expect(constraint(fields)).toEqual(expected as never);
  });

  test.each<[Record<string, unknown>, string | undefined]>([
    [format({ type: "xml" }), "response_format.type"],
    [format({}), "response_format.type"],
    [format({ type: "json_schema" }), "response_format.json_schema"],
    [format({ type: "json_schema", json_schema: { schema: {} } }), "response_format.json_schema.name"],
    [format({ type: "json_schema", json_schema: { name: "", schema: {} } }), "response_format.json_schema.name"],
    [format({ type: "json_schema", json_schema: { name: "n", schema: "{}" } }), "response_format.json_schema.schema"],
    [{ structured_outputs: { regex: "" } }, "structured_outputs.regex"],
    [{ structured_outputs: { grammar: 5 } }, "structured_outputs.grammar"],
    [{ structured_outputs: { choice: [] } }, "structured_outputs.choice"],
    [{ structured_outputs: { choice: ["a", 1] } }, "structured_outputs.choice"],
    [{ structured_outputs: { json: 5 } }, "structured_outputs.json"],
    [{ structured_outputs: { json: "no JSON" } }, "structured_outputs.json"],
    [{ structured_outputs: {} }, "structured_outputs"],
    [{ structured_outputs: { unheard_of: "x" } }, "structured_outputs"],
    [{ guided_choice: ["a", ""] }, "guided_choice"],
    [{ guided_choice: [] }, "guided_choice"],
    [{ guided_json: "" }, "guided_json"],
    [{ json_schema: "" }, "json_schema"],
    [{ json_schema: "{" }, "json_schema"],
    [{ regex: "" }, "regex"],
  ])("%j is refused", (fields, param) => {
    expect(refusal(fields)).toMatchObject({ status: 400, param });
  });

  test("any two of them are refused", () => {
    const all: Record<string, unknown>[] = [
      { response_format: { type: "json_object" } },
      { structured_outputs: { regex: "a" } },
      { regex: "a" },
      { ebnf: "g" },
      { json_schema: {} },
      { guided_json: {} },
      { guided_regex: "a" },
      { guided_choice: ["a"] },
      { guided_grammar: "g" },
    ];
    for (const one of all) for (const two of all) if (one !== two) expect(refusal({ ...one, ...two }).status).toBe(400);
    expect(refusal({ structured_outputs: { regex: "a", json: {} } }).status).toBe(400);
  });
});
