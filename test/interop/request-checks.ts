/** What the official stubs decode from the gateway's requests, field by field, in every dialect; and what it refuses to send. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { ask, type ChatBody } from "../engines/answer.ts";
import { refuses } from "./dialects.ts";
import type { QwenText } from "./qwen-text.ts";
import { type EngineEvent, NoEventError, type ScriptedEngine } from "./scripted-engine.ts";
import type { Suite } from "./suite.ts";
import type { Asked } from "./wire-forms.ts";
import type { Peer } from "./worker-checks.ts";

const PROMPT = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
const CONTEXT = 131072;

/** What every request carries when only max_tokens is asked. */
const NEUTRAL: Omit<Asked, "ids"> = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionPenalty: 1,
  maxTokens: 7,
  minTokens: 0,
  n: 1,
  ignoreEos: false,
  stopTokenIds: [],
  logitBias: {},
  skipSpecialTokens: true,
};
/** What the engines that tell defaults say. */
const DEFAULTS = { temperature: 0.5, topP: 0.75, topK: 20 };

const schema = { type: "object", properties: { größe: { type: "integer" } } };
const tag = {
  type: "structural_tag",
  structures: [{ begin: "<f>", schema: { type: "object" }, end: "</f>" }],
  triggers: ["<f>"],
};

/** Name, what the client asks, what of the neutral form differs, and the field that engines may be unable to do. */
const rows: readonly (readonly [string, ChatBody, Partial<Asked>, string?])[] = [
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
      topP: 0.5,
      topK: 7,
      minP: 0.125,
      frequencyPenalty: 0.25,
      presencePenalty: -0.5,
      repetitionPenalty: 1.25,
    },
  ],
  ["n", { n: 3, temperature: 1 }, { n: 3, temperature: 1 }, "n"],
  ["seed", { seed: 42 }, { seed: 42 }, "seed"],
  ["seed 0", { seed: 0 }, { seed: 0 }, "seed"],
  ["negative seed", { seed: -5 }, { seed: -5 }, "seed"],
  ["min_tokens", { min_tokens: 3 }, { minTokens: 3 }, "min_tokens"],
  ["ignore_eos", { ignore_eos: true }, { ignoreEos: true }],
  ["stop_token_ids", { stop_token_ids: [1, 128, 151936 - 1] }, { stopTokenIds: [1, 128, 151935] }],
  ["logit_bias", { logit_bias: { "0": -100, "9707": 1.5 } }, { logitBias: { "0": -100, "9707": 1.5 } }, "logit_bias"],
  ["special tokens shown", { skip_special_tokens: false }, { skipSpecialTokens: false }],
  [
    "json_schema",
    { response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
    { constraint: { kind: "json_schema", value: JSON.stringify(schema) } },
    "json_schema",
  ],
  [
    "json_object",
    { response_format: { type: "json_object" } },
    { constraint: { kind: "json_object", value: "" } },
    "json_object",
  ],
  ["regex", { structured_outputs: { regex: "[а-я]+" } }, { constraint: { kind: "regex", value: "[а-я]+" } }, "regex"],
  [
    "grammar",
    { structured_outputs: { grammar: 'root ::= "yes"' } },
    { constraint: { kind: "grammar", value: 'root ::= "yes"' } },
    "grammar",
  ],
  [
    "choice",
    { structured_outputs: { choice: ["ja", "нет", "はい"] } },
    { constraint: { kind: "choice", value: "", choices: ["ja", "нет", "はい"] } },
    "choice",
  ],
  [
    "structural_tag",
    { response_format: tag },
    { constraint: { kind: "structural_tag", value: JSON.stringify(tag) } },
    "structural_tag",
  ],
];

/** The order of stop ids says nothing. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "stop_token_ids" ? [...(inner as number[])].sort((a, b) => a - b) : sorted(inner),
    ]),
  );
}

/** No generation must have reached the engine. */
async function nothingCame(engine: ScriptedEngine): Promise<void> {
  const event = await engine.next("generate", 100).catch((error: unknown) => error);
  if (!(event instanceof NoEventError)) throw new Error("the engine got a request");
}

export async function requestChecks(
  suite: Suite,
  engine: ScriptedEngine,
  url: string,
  qwen: QwenText,
  { dialect, release }: Peer,
): Promise<void> {
  const base: ChatBody = { model: dialect.model, messages: [{ role: "user", content: "Hello" }], max_tokens: 7 };
  const refused = (field: string | undefined): boolean => field !== undefined && refuses(dialect, release, field);

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

  for (const [name, body, differs, field] of rows) {
    if (refused(field)) {
      await suite.check(`request: ${name}: refused, nothing reaches the engine`, async () => {
        await engine.play({ complete: "stop" });
        const answer = await ask(url, { ...base, ...body });
        equal(answer.status, 400, answer.error ?? "no error");
        match(answer.error ?? "", /do not offer/);
        await nothingCame(engine);
      });
      continue;
    }
    await suite.check(`request: ${name}`, async () => {
      const { request, unknown } = await sent(body);
      const asked: Asked = {
        ids: qwen.encode(PROMPT),
        ...NEUTRAL,
        ...(dialect.form.hasDefaults && DEFAULTS),
        ...differs,
      };
      const { request_id: id, ...fields } = request ?? {};
      ok(typeof id === "string" && id !== "", "there is a request id");
      deepEqual(sorted(fields), sorted(dialect.form.expected(asked)));
      deepEqual(unknown, []);
    });
  }

  await suite.check("request: stop strings whose end the gateway finds", async () => {
    const { request } = await sent({ stop: ["never"], include_stop_str_in_output: true });
    equal(JSON.stringify(request).includes("never"), false);
  });

  await suite.check("request: stream is set for a stream only", async () => {
    const isStream = ({ request }: EngineEvent) => request?.["stream"] ?? request?.["streaming"];
    equal(isStream(await sent({ stream: true })), true);
    equal(isStream(await sent({})), undefined);
  });

  await suite.check("request: ids differ from request to request", async () => {
    notEqual((await sent({})).id, (await sent({})).id);
  });

  await suite.check("request: max_tokens left out fills the context", async () => {
    const event = await sent({ max_tokens: null });
    const text = JSON.stringify(event.request);
    const found = /"max_(?:new_)?tokens": ?(\d+)/.exec(text)?.[1];
    equal(Number(found), CONTEXT - (event.prompt_tokens ?? 0));
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
    await nothingCame(engine);
  });
}
