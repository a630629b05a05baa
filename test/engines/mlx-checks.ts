/** A random model on MLX: what its servicer does, and what the gateway must keep from it, for it checks nothing. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { type Answer, ask, askAndHangUp, askAndLeave, askStream, type ChatBody } from "./answer.ts";
import { freed, type WatchedEngine } from "./gateway-checks.ts";
import { servedModel } from "./mlx-real-checks.ts";
import type { CaseResult } from "./results.ts";
import { startGateway, startMlx } from "./servers.ts";

const EOS = 151_645;
/** Named by generation_config.json only, which the bundle of the old servicer lacks. */
const SECOND_EOS = 151_643;
const HELLO = 9707;
const PAST_VOCABULARY = 4_000_000;
const TOLERANCE = 1e-6;

const force = (id: number): ChatBody => ({ logit_bias: { [id]: 100 } });
const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] };
const tag = { type: "structural_tag", structures: [{ begin: "<f>", schema, end: "</f>" }], triggers: ["<f>"] };
const tools = [{ type: "function", function: { name: "f", parameters: schema } }];

/** Name, request, words of the refusal: nothing of them may reach the engine. */
const refused: readonly (readonly [string, ChatBody, RegExp])[] = [
  ["a JSON schema", { response_format: { type: "json_schema", json_schema: { name: "x", schema } } }, /do not offer/],
  ["any JSON object", { response_format: { type: "json_object" } }, /do not offer/],
  ["a regular expression", { structured_outputs: { regex: "[ab]+" } }, /do not offer/],
  ["a grammar", { structured_outputs: { grammar: 'root ::= "a"' } }, /do not offer/],
  ["a choice of texts", { structured_outputs: { choice: ["a", "b"] } }, /do not offer/],
  ["a structural tag", { response_format: tag }, /do not offer/],
  ["a tool call that is required", { tools, tool_choice: "required" }, /cannot enforce a tool call/],
  ["n = 2", { n: 2, temperature: 1 }, /do not offer n/],
  ["n = 2, greedy", { n: 2, temperature: 0 }, /do not offer n/],
  ["min_tokens", { min_tokens: 3 }, /min_tokens/],
  ["max_tokens 0", { max_tokens: 0 }, /max_tokens/],
  ["a negative temperature", { temperature: -1 }, /temperature/],
  ["a stop token past the vocabulary", { stop_token_ids: [PAST_VOCABULARY] }, /vocabulary/],
  ["a bias past the vocabulary", { logit_bias: { [PAST_VOCABULARY]: 1 } }, /not a token id/],
  ["an empty prompt", { prompt: [], messages: undefined }, /prompt/],
  ["an empty text", { prompt: "", messages: undefined }, /empty/],
  [
    "a token of the prompt past the vocabulary",
    { prompt: [5, PAST_VOCABULARY], messages: undefined },
    /expected a token id/,
  ],
  ["logprobs of the prompt", { prompt_logprobs: 1 }, /do not offer|not support/],
];

class Checks {
  readonly results: CaseResult[] = [];
  constructor(private readonly prefix: string) {}

  async check(name: string, work: () => Promise<void>): Promise<void> {
    const faults: string[] = [];
    try {
      await work();
    } catch (error) {
      faults.push(...(error as Error).message.split("\n"));
    }
    this.results.push({ name: `${this.prefix}: ${name}`, faults, note: undefined });
  }
}

/** Starts the engine with a servicer of a release and a gateway, and checks. */
export async function mlxChecks(release: "0.4.14" | "0.4.28"): Promise<CaseResult[]> {
  const engine = await startMlx("tiny", release);
  try {
    const gateway = await startGateway(engine.url);
    try {
      return await checks(release, gateway.url, { dialect: "mlx", url: engine.url });
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}

async function checks(release: "0.4.14" | "0.4.28", url: string, engine: WatchedEngine): Promise<CaseResult[]> {
  const all = new Checks(release);
  const check = all.check.bind(all);
  const model = await servedModel(url);
  const base: ChatBody = { model, messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 8 };
  /** Whole and streamed, which must agree. */
  const both = async (body: ChatBody): Promise<Answer> => {
    const asked = { ...base, return_token_ids: true, ...body };
    const whole = await ask(url, asked);
    equal(whole.status, 200, whole.error ?? "no error");
    const { streamFaults, ...streamed } = await askStream(url, asked);
    deepEqual(streamFaults, []);
    deepEqual(streamed.choices, whole.choices);
    deepEqual(streamed.usage, whole.usage);
    return whole;
  };

  await check("the worker's dialect", async () => {
    match(await (await fetch(`${url}/workers`)).text(), /"runtime_type":"mlx"/);
  });
  await check("greedy, whole as streamed", async () => {
    const { choices, usage } = await both({});
    deepEqual([choices[0]?.finishReason, choices[0]?.tokenIds?.length], ["length", 8]);
    equal(usage?.completion, 8);
  });
  await check("a forced token", async () => {
    equal((await both({ ...force(HELLO), max_tokens: 5 })).choices[0]?.text, "Hello".repeat(5));
  });
  await check("the end of the turn", async () => {
    const { choices } = await both(force(EOS));
    deepEqual([choices[0]?.text, choices[0]?.finishReason], ["", "stop"]);
  });
  // Where the bundle names it, the gateway tells the engine; else nobody knows that it ends an answer.
  const isNamed = release === "0.4.28";
  await check(`the second end of the turn ${isNamed ? "ends it" : "is not known to an old engine"}`, async () => {
    const { choices } = await both(force(SECOND_EOS));
    deepEqual([choices[0]?.text, choices[0]?.finishReason], ["", isNamed ? "stop" : "length"]);
  });
  await check("ignore_eos", async () => {
    const { choices, usage } = await both({ ...force(EOS), ignore_eos: true, max_tokens: 4 });
    deepEqual([choices[0]?.finishReason, usage?.completion], ["length", 4]);
  });
  await check("a stop token", async () => {
    const { choices } = await both({ ...force(HELLO), stop_token_ids: [HELLO] });
    deepEqual([choices[0]?.text, choices[0]?.finishReason, choices[0]?.stopReason], ["", "stop", HELLO]);
  });
  await check("a stop string, which the gateway finds", async () => {
    const { choices } = await both({ ...force(HELLO), max_tokens: 200, stop: ["loHelloHe"] });
    deepEqual([choices[0]?.text, choices[0]?.finishReason], ["Hel", "stop"]);
  });
  await check("logprobs", async () => {
    const { choices } = await both({ logprobs: true, top_logprobs: 3, max_tokens: 4 });
    const rows = choices[0]?.logprobs ?? [];
    equal(rows.length, 4);
    for (const { logprob, top_logprobs: top } of rows) {
      equal(top.length, 3);
      ok(Math.abs(top[0]!.logprob - logprob) < TOLERANCE, "a greedy token is the most likely one");
      ok(top[0]!.logprob >= top[1]!.logprob && top[1]!.logprob >= top[2]!.logprob, "best first");
    }
  });
  await check("a seed is taken", async () => {
    equal((await ask(url, { ...base, temperature: 1, seed: 7 })).status, 200);
  });
  for (const [name, body, words] of refused)
    await check(`refused: ${name}`, async () => {
      const { messages: _, ...bare } = base;
      const answer = await ask(url, "prompt" in body ? { ...bare, ...body } : { ...base, ...body });
      equal(answer.status, 400, answer.error ?? "no error");
      match(answer.error ?? "", words);
    });
  await check("after all that the engine still answers", async () => {
    equal((await ask(url, { ...base, ...force(HELLO), max_tokens: 1 })).choices[0]?.text, "Hello");
  });
  await check("eight at once, each with its own token", async () => {
    const ids = Array.from({ length: 8 }, (_, i) => 1000 + i);
    const answers = await Promise.all(
      ids.map((id, i) => (i % 2 === 0 ? ask : askStream)(url, { ...base, ...force(id), return_token_ids: true })),
    );
    deepEqual(
      answers.map(({ choices }) => choices[0]?.tokenIds),
      ids.map((id) => Array.from({ length: 8 }, () => id)),
    );
  });
  const long = { ...base, max_tokens: 3000, ignore_eos: true };
  all.results.push(
    await freed(`${release}: client leaves a stream`, engine, 1, () => askAndLeave(url, long, 10)),
    await freed(`${release}: client leaves while waiting for the whole answer`, engine, 1, () =>
      askAndHangUp(url, long, 1500),
    ),
  );
  return all.results;
}
