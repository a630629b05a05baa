/** Engines that prefill and engines that decode behind the program, asked by OpenAI's own client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { BUILD_MS, collieBinary } from "./support/binary.ts";
import { eventually, type Program, start, startEngine, type TestEngine, user } from "./support/processes.ts";

interface Handovers {
  readonly handover: { readonly given: number; readonly taken: number; readonly failed: number };
  readonly pairing: { readonly bootstrapPort?: number; readonly offers: number };
  readonly engine: { readonly blocksInUse: number };
}

const SCRIPT = `
- contains: count for me
  text: "one two three four five six seven eight"
- contains: endless
  text: "${"on and ".repeat(400)}"
  ms_per_token: 30
`;

const programs: Program[] = [];
const engines: TestEngine[] = [];
beforeAll(() => {
  collieBinary();
}, BUILD_MS);
afterAll(async () => {
  await Promise.all([...programs, ...engines].map((one) => one.stop()));
});

async function engine(...args: string[]): Promise<TestEngine> {
  const its = await startEngine(SCRIPT, args);
  engines.push(its);
  return its;
}

const handovers = async (its: TestEngine) => (await its.stats()) as unknown as Handovers;

async function serve(workers: number, ...args: string[]) {
  const program = start(["serve", "--host", "127.0.0.1", "--port", "0", "--threads", "2", ...args]);
  programs.push(program);
  const [, url, model] = await program.until(/ready on (http:\S+), model (\S+)/);
  const api = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 });
  await eventually(async () => {
    const { healthy_workers: healthy } = (await (await fetch(`${url}/readiness`)).json()) as {
      healthy_workers: number;
    };
    return healthy === workers;
  }, 10_000);
  return { url: url!, model: model!, api };
}

const KINDS = [
  ["SGLang", "sglang"],
  ["TokenSpeed", "tokenspeed"],
  ["vLLM with NIXL", "vllm", "--kv-connector", "nixl"],
  ["vLLM with Mooncake", "vllm", "--kv-connector", "mooncake"],
] as const;

describe.each(KINDS)("%s", (_, dialect, ...connector) => {
  let prefill: TestEngine;
  let decode: TestEngine;
  let gateway: Awaited<ReturnType<typeof serve>>;

  beforeAll(async () => {
    const play = ["--dialect", dialect, "--speed", "20", ...connector];
    prefill = await engine(...play, "--role", "prefill");
    decode = await engine(...play, "--role", "decode");
    const port = String((await handovers(prefill)).pairing.bootstrapPort);
    gateway = await serve(2, "--prefill", prefill.url, port, "--decode", decode.url);
  }, BUILD_MS);

  const idle = async () =>
    eventually(async () => {
      const all = await Promise.all([handovers(prefill), handovers(decode)]);
      return all.every(({ pairing, engine }) => pairing.offers === 0 && engine.blocksInUse === 0);
    });

  test("a chat, whole and streamed, with the tokens that the prefill found in its cache", async () => {
    const { api, model } = gateway;
    const request = { model, messages: user(`count for me, ${"please ".repeat(60)}`), temperature: 0 };
    const whole = await api.chat.completions.create(request);
    expect(whole.choices[0]!.message.content).toBe("one two three four five six seven eight");
    expect(whole.choices[0]!.finish_reason).toBe("stop");
    expect(whole.usage!.prompt_tokens_details?.cached_tokens ?? 0).toBe(0);
    const stream = await api.chat.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe("one two three four five six seven eight");
    expect(usage).toMatchObject({
      prompt_tokens: whole.usage!.prompt_tokens,
      completion_tokens: whole.usage!.completion_tokens,
    });
    const cached = usage!.prompt_tokens_details!.cached_tokens!;
    expect(cached).toBeGreaterThanOrEqual(48);
    expect(cached).toBeLessThan(usage!.prompt_tokens);
    expect((await handovers(prefill)).handover).toMatchObject({ given: 2, failed: 0 });
    expect((await handovers(decode)).handover).toMatchObject({ taken: 2, failed: 0 });
    await idle();
  });

  test("a completion, and one that is broken off", async () => {
    const { api, model } = gateway;
    const whole = await api.completions.create({ model, prompt: "count for me", max_tokens: 5, temperature: 0 });
    expect(whole.choices[0]).toMatchObject({ finish_reason: "length" });
    const stream = await api.completions.create({ model, prompt: "endless", max_tokens: 400, stream: true });
    for await (const _ of stream) break;
    await idle();
    expect((await decode.stats()).open).toBe(0);
  });

  test("both are on the list of workers with their parts", async () => {
    const { workers, stats } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
      workers: { url: string; worker_type: string }[];
      stats: object;
    };
    expect(workers.map(({ url, worker_type }) => [url, worker_type])).toEqual([
      [prefill.url, "prefill"],
      [decode.url, "decode"],
    ]);
    expect(stats).toMatchObject({ prefill_count: 1, decode_count: 1, regular_count: 0 });
  });
});

test(
  "engines tell their parts, and what is missing is told until it comes",
  async () => {
    const prefill = await engine("--dialect", "sglang", "--speed", "20", "--role", "prefill");
    const { url, api, model } = await serve(1, "--worker-urls", prefill.url);
    const ask = () => api.chat.completions.create({ model, messages: user("count for me") });
    const error = await ask().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      status: 503,
      message: expect.stringContaining("it has workers that prefill, and none that decodes"),
    });
    const decode = await engine("--dialect", "sglang", "--speed", "20", "--role", "decode");
    const added = await fetch(`${url}/workers`, { method: "POST", body: JSON.stringify({ url: decode.url }) });
    expect(added.ok).toBe(true);
    await eventually(() =>
      ask().then(
        () => true,
        () => false,
      ),
    );
    expect((await handovers(decode)).handover.taken).toBe(1);
  },
  BUILD_MS,
);

test("a start with one part only is refused, with what is missing", async () => {
  for (const [args, problem] of [
    [["--prefill", "grpc://127.0.0.1:1"], "--prefill: needs workers that decode what is prefilled: --decode"],
    [["--decode", "grpc://127.0.0.1:1"], "--decode: needs workers that prefill: --prefill"],
    [["--epd-disaggregation"], "--epd-disaggregation: there is no such flag"],
  ] as const) {
    const program = start(["serve", "--port", "0", ...args]);
    expect(await program.exited).not.toBe(0);
    expect(program.output()).toContain(problem);
  }
});
