/** HTTP engines behind the program, asked by OpenAI's own client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { BUILD_MS } from "./support/binary.ts";
import { eventually, type Program, type StartOptions, start, user } from "./support/processes.ts";

interface HttpEngine {
  readonly program: Program;
  readonly url: string;
  stats(): Promise<{ readonly received: number; readonly aborted: number; readonly open: number }>;
  fault(rule: object): Promise<void>;
}

const running: Program[] = [];

async function engine(...args: string[]): Promise<HttpEngine> {
  const program = start(["engine", "--dialect", "openai", "--port", "0", ...args]);
  running.push(program);
  const [, url, looks] = await program.until(/ready on (http:\S+), statistics on (http:\S+)\/stats/);
  return {
    program,
    url: url!,
    async stats() {
      const { received, abortedByCancel, open } = (await (await fetch(`${looks}/stats`)).json()) as Record<
        string,
        number
      >;
      return { received: received!, aborted: abortedByCancel!, open: open! };
    },
    async fault(rule) {
      expect((await fetch(`${looks}/faults`, { method: "POST", body: JSON.stringify(rule) })).ok).toBe(true);
    },
  };
}

async function gateway(urls: readonly string[], args: readonly string[] = [], options?: StartOptions) {
  const program = start(["serve", "--host", "127.0.0.1", "--port", "0", "--worker-urls", ...urls, ...args], options);
  running.push(program);
  const [, url] = await program.until(/ready on (http:\S+), model \S+/);
  await eventually(async () => {
    const { healthy_workers: healthy } = (await (await fetch(`${url}/readiness`)).json()) as {
      healthy_workers: number;
    };
    return healthy === urls.length;
  }, 10_000);
  return { url: url!, api: new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 }) };
}

afterAll(async () => {
  await Promise.all(running.map((program) => program.stop()));
});

const MODEL = "collie-demo";
const chat = (content: string) => ({ model: MODEL, messages: user(content), max_tokens: 40 });

async function textOf(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<string> {
  let text = "";
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
  return text;
}

for (const flavor of ["vllm", "sglang", "llamacpp", "ollama"] as const)
  describe(flavor, () => {
    let api: OpenAI;
    let direct: OpenAI;
    beforeAll(async () => {
      const one = await engine("--flavor", flavor, "--speed", "0", "--no-prefix-cache");
      direct = new OpenAI({ baseURL: `${one.url}/v1`, apiKey: "any", maxRetries: 0 });
      // without a scheme, both are tried
      ({ api } = await gateway([flavor === "ollama" ? new URL(one.url).host : one.url]));
    }, BUILD_MS);

    test("a chat and a completion say what the engine says, whole and streamed", async () => {
      const of = async (client: OpenAI) => {
        const whole = await client.chat.completions.create(chat("hello there"));
        const stream = await client.chat.completions.create({
          ...chat("hello there"),
          stream: true,
          stream_options: { include_usage: true },
        });
        const events: OpenAI.ChatCompletionChunk[] = [];
        for await (const event of stream) events.push(event);
        const completion = await client.completions.create({ model: MODEL, prompt: "one two", max_tokens: 9 });
        return {
          whole: [whole.choices, whole.usage],
          streamed: events.map(({ choices, usage }) => [choices, usage]),
          completion: [completion.choices, completion.usage],
        };
      };
      const through = await of(api);
      expect(through).toEqual(await of(direct));
      expect(through.streamed.length).toBeGreaterThan(5);
    });

    test("the engine's own refusals come as they are", async () => {
      const failure = async (client: OpenAI) =>
        client.chat.completions.create({ ...chat("x"), temperature: -1 }).then(
          () => undefined,
          (error: InstanceType<typeof OpenAI.APIError>) => [error.status, error.message],
        );
      expect(await failure(api)).toEqual(await failure(direct));
      expect((await failure(api))?.[0]).toBe(400);
    });
  });

test(
  "embeddings and rerank",
  async () => {
    const one = await engine("--flavor", "vllm", "--speed", "0", "--pooling-dim", "16");
    const { api, url } = await gateway([one.url]);
    const { data, usage } = await api.embeddings.create({ model: MODEL, input: ["a cat", "a dog"] });
    expect(data.map(({ embedding }) => embedding.length)).toEqual([16, 16]);
    expect(usage.prompt_tokens).toBeGreaterThan(0);
    for (const path of ["/v1/rerank", "/rerank"]) {
      const reply = await fetch(url + path, {
        method: "POST",
        body: JSON.stringify({ model: MODEL, query: "a cat", documents: ["a dog", "a cat"] }),
      });
      const { results } = (await reply.json()) as { results: { index: number }[] };
      expect(results[0]!.index).toBe(1);
    }
  },
  BUILD_MS,
);

describe("with two engines", () => {
  let engines: HttpEngine[];
  let api: OpenAI;
  let url: string;
  beforeAll(async () => {
    engines = [await engine(), await engine()];
    ({ api, url } = await gateway(engines.map((one) => one.url)));
  }, BUILD_MS);

  test("a client that leaves ends the work at the engine", async () => {
    const stream = await api.chat.completions.create({ ...chat("leave"), max_tokens: 4000, stream: true });
    for await (const _ of stream) break;
    await eventually(async () => {
      const [one, two] = await Promise.all(engines.map((each) => each.stats()));
      return one!.open + two!.open === 0 && one!.aborted + two!.aborted === 1;
    });
  });

  test("an engine that cannot take a request now is passed over, before the first byte, streamed and whole", async () => {
    for (const each of engines)
      await each.fault({ contains: "pass over", fault: { kind: "disconnect", after_tokens: 0 }, times: 1 });
    // each of the two fails once, at the first one's turn and then at the second's
    expect(await api.chat.completions.create(chat("pass over")).catch((error) => error.status)).toBe(503);
    for (const each of engines) await each.fault({ contains: "go on", fault: { kind: "status", code: 503 }, times: 1 });
    expect(await api.chat.completions.create(chat("go on")).catch((error) => error.status)).toBe(503);
    await engines[0]!.fault({ contains: "once more", fault: { kind: "disconnect", after_tokens: 0 } });
    for (let i = 0; i < 3; i++) {
      expect((await api.chat.completions.create(chat("once more"))).choices[0]!.message.content).toContain("simulated");
      expect(await textOf(await api.chat.completions.create({ ...chat("once more"), stream: true }))).toContain(
        "simulated",
      );
    }
  });

  test("a fault in the middle of a stream is an error for the client, with what came before it", async () => {
    for (const each of engines)
      await each.fault({ contains: "cut midway", fault: { kind: "disconnect", after_tokens: 5 } });
    const stream = await api.chat.completions.create({ ...chat("cut midway"), stream: true });
    let text = "";
    const failure = await (async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    })().catch((error) => error);
    expect(failure).toBeInstanceOf(OpenAI.APIError);
    expect(text.length).toBeGreaterThan(3);
  });

  test("one that is killed is not missed; one that returns is used again", async () => {
    await engines[0]!.program.stop();
    for (let i = 0; i < 4; i++) expect((await api.chat.completions.create(chat("hi"))).choices.length).toBe(1);
    await fetch(`${url}/readiness`);
  });
});
