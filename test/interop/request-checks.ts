/** What the official stubs decode from the gateway's requests, field by field. */
import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { ask, type ChatBody } from "../engines/answer.ts";
import type { QwenText } from "./qwen-text.ts";
import type { EngineEvent, ScriptedEngine } from "./scripted-engine.ts";
import type { Suite } from "./suite.ts";

const PROMPT = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
const base: ChatBody = { model: "scripted", messages: [{ role: "user", content: "Hello" }], max_tokens: 7 };

/** What every request carries when only `base` is asked: the model's own defaults, and vLLM's neutral values. */
const plain = {
  temperature: 0.5,
  top_p: 0.75,
  top_k: 20,
  repetition_penalty: 1,
  max_tokens: 7,
  skip_special_tokens: true,
  spaces_between_special_tokens: true,
  n: 1,
};

const schema = { type: "object", properties: { größe: { type: "integer" } } };
const tag = {
  type: "structural_tag",
  structures: [{ begin: "<f>", schema: { type: "object" }, end: "</f>" }],
  triggers: ["<f>"],
};

/** Name, what the client asks, what must differ from `plain` on the wire. */
const rows: [string, ChatBody, Record<string, unknown>][] = [
  ["nothing but max_tokens", {}, {}],
  ["temperature 0 is sent, not left out", { temperature: 0 }, { temperature: 0 }],
  [
    "sampling numbers",
    {
      temperature: 1.5,
      top_p: 0.5,
      top_k: 7,
      min_p: 0.125,
      frequency_penalty: 0.25,
      presence_penalty: -0.5,
      repetition_penalty: 1.25,
    },
    {
      temperature: 1.5,
      top_p: 0.5,
      top_k: 7,
      min_p: 0.125,
      frequency_penalty: 0.25,
      presence_penalty: -0.5,
      repetition_penalty: 1.25,
    },
  ],
  ["n", { n: 3, temperature: 1 }, { n: 3, temperature: 1 }],
  ["seed", { seed: 42 }, { seed: 42 }],
  ["seed 0", { seed: 0 }, { seed: 0 }],
  ["negative seed", { seed: -5 }, { seed: -5 }],
  ["min_tokens", { min_tokens: 3 }, { min_tokens: 3 }],
  ["ignore_eos", { ignore_eos: true }, { ignore_eos: true }],
  ["stop_token_ids", { stop_token_ids: [1, 128, 151936 - 1] }, { stop_token_ids: [1, 128, 151935] }],
  ["logit_bias", { logit_bias: { "0": -100, "9707": 1.5 } }, { logit_bias: { "0": -100, "9707": 1.5 } }],
  ["special tokens shown", { skip_special_tokens: false }, { skip_special_tokens: undefined }],
  [
    "json_schema",
    { response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
    { json_schema: JSON.stringify(schema) },
  ],
  ["json_object", { response_format: { type: "json_object" } }, { json_schema: '{"type":"object"}' }],
  ["regex", { structured_outputs: { regex: "[а-я]+" } }, { regex: "[а-я]+" }],
  ["grammar", { structured_outputs: { grammar: 'root ::= "yes"' } }, { grammar: 'root ::= "yes"' }],
  ["choice", { structured_outputs: { choice: ["ja", "нет", "はい"] } }, { choice: { choices: ["ja", "нет", "はい"] } }],
  ["structural_tag", { response_format: tag }, { structural_tag: JSON.stringify(tag) }],
];

export async function requestChecks(suite: Suite, engine: ScriptedEngine, url: string, qwen: QwenText): Promise<void> {
  async function sent(body: ChatBody, headers: Record<string, string> = {}): Promise<EngineEvent> {
    const steps = Array.from({ length: Number(body["n"] ?? 1) }, (_, index) => [
      { chunk: [qwen.one("Hello")], index },
      { complete: "stop", index },
    ]);
    await engine.play(...steps.flat());
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...base, ...body }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    equal(response.status, 200, text);
    return engine.next("generate", 1000);
  }

  const sampling = ({ request }: EngineEvent) => (request?.["sampling_params"] ?? {}) as Record<string, unknown>;

  for (const [name, body, differs] of rows) {
    await suite.check(`request: ${name}`, async () => {
      const { request } = await sent(body);
      const expected: Record<string, unknown> = { ...plain, ...differs };
      for (const key of Object.keys(expected)) if (expected[key] === undefined) delete expected[key];
      deepEqual(request?.["sampling_params"], expected);
      deepEqual(request?.["tokenized"], { input_ids: qwen.encode(PROMPT) });
      deepEqual(Object.keys(request ?? {}).sort(), ["request_id", "sampling_params", "tokenized"]);
    });
  }

  await suite.check("request: stop strings stay in the gateway", async () => {
    equal(sampling(await sent({ stop: ["never"], include_stop_str_in_output: true }))["stop"], undefined);
  });

  await suite.check("request: stream is set for a stream only", async () => {
    equal((await sent({ stream: true })).request?.["stream"], true);
    equal((await sent({})).request?.["stream"], undefined);
  });

  await suite.check("request: ids differ from request to request", async () => {
    notEqual((await sent({})).id, (await sent({})).id);
  });

  await suite.check("request: max_tokens left out fills the context", async () => {
    const event = await sent({ max_tokens: null });
    equal(sampling(event)["max_tokens"], 131072 - (event.prompt_tokens ?? 0));
  });

  await suite.check("request: a prompt of over 70,000 tokens", async () => {
    const content = "naïve 世界 12345 ".repeat(8000);
    const expected = qwen.encode(PROMPT.replace("Hello", () => content.trim()));
    ok(expected.length > 70_000, `${expected.length} tokens`);
    const { prompt_tokens, prompt_sum } = await sent({ messages: [{ role: "user", content: content.trim() }] });
    deepEqual([prompt_tokens, prompt_sum], [expected.length, expected.reduce((a, b) => a + b, 0)]);
  });

  await suite.check("metadata: no credentials or cookies of the client", async () => {
    const { metadata } = await sent(
      {},
      { authorization: "Bearer secret-of-the-client", cookie: "session=1", "x-api-key": "k" },
    );
    const text = JSON.stringify(metadata);
    ok(!/secret-of-the-client|session=1|x-api-key/.test(text), text);
  });

  await suite.check("request: refused by the gateway, nothing reaches the engine", async () => {
    await engine.play({ complete: "stop" });
    equal((await ask(url, { ...base, messages: [] })).status, 400);
    equal((await ask(url, { ...base, temperature: 9 })).status, 400);
    await engine.next("generate", 300).then(
      () => {
        throw new Error("the engine got a request");
      },
      () => {},
    );
  });
}
