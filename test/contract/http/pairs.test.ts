/** Prefill at one HTTP server and decode at another, against simulated servers that check the hand-over. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { SimulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { settings, TABLES, until } from "../simulator/harness.ts";
import { type HttpGateway, startHttpGateway } from "./gateway.ts";

setDefaultTimeout(30_000);

type Flavor = Pick<SimulatorOptions, "flavor" | "kvConnector">;
const FLAVORS = [
  ["SGLang", { flavor: "sglang", kvConnector: undefined }],
  ["vLLM with NIXL", { flavor: "vllm", kvConnector: "nixl" }],
  ["vLLM with Mooncake", { flavor: "vllm", kvConnector: "mooncake" }],
] as const satisfies readonly (readonly [string, Flavor])[];

const MODEL = "collie-demo";
const words = (count: number) => Array.from({ length: count }, (_, i) => `word${i}`).join(" ");
const CHAT = {
  model: MODEL,
  max_tokens: 20,
  temperature: 0,
  messages: [{ role: "user" as const, content: words(100) }],
};

const ANSWER = "I am a simulated engine. Your prompt had";

interface Pair {
  readonly prefill: Simulator;
  readonly decode: Simulator;
  readonly front: HttpGateway;
  quiet(): Promise<void>;
  states(): string[];
}

async function withPair(
  flavor: Flavor,
  body: (pair: Pair) => Promise<void>,
  changed: Partial<SimulatorOptions> = {},
): Promise<void> {
  const common = { dialect: "openai", ...flavor, kvLeaseSecs: 1, handoverTimeoutSecs: 1, ...changed } as const;
  const [prefill, decode] = await Promise.all(
    (["prefill", "decode"] as const).map((role) =>
      startSimulator(settings({ ...common, role }), { tokenizerCacheDir: TABLES }),
    ),
  );
  const labels: Record<string, string> =
    flavor.kvConnector === "mooncake"
      ? { kv_connector: "MooncakeConnector", kv_engine_id: prefill!.stats().pairing!.engineId }
      : {};
  const front = await startHttpGateway({
    http: [prefill!, decode!].map(({ port }) => `http://127.0.0.1:${port}`),
    special: [{ role: "prefill", bootstrapPort: prefill!.bootstrapPort, labels }, { role: "decode" }],
    args: ["--retry-max-retries", "1", "--cb-failure-threshold", "1"],
  });
  const simulators = [prefill!, decode!];
  try {
    await body({
      prefill: prefill!,
      decode: decode!,
      front,
      quiet: () =>
        until(
          () =>
            front.board.bookings() === 0 &&
            simulators.every((its) => {
              const { open, pairing, engine } = its.stats();
              return open === 0 && pairing!.offers === 0 && engine.blocksInUse === 0;
            }),
          "everything ends",
        ),
      states: () => front.slots.map((slot) => front.board.breaker.state(slot)),
    });
  } finally {
    await front.stop();
    for (const simulator of simulators) await simulator.stop();
  }
}

describe.each(FLAVORS)("%s", (_, flavor) => {
  test("an answer comes from the server that decodes, whole and streamed, of chats and completions", () =>
    withPair(
      flavor,
      async ({ front, prefill, decode, quiet, states }) => {
        const { choices } = await front.api.chat.completions.create(CHAT);
        expect(choices[0]!.message.content).toStartWith(ANSWER);
        let streamed = "";
        const stream = await front.api.chat.completions.create({
          ...CHAT,
          stream: true,
          stream_options: { include_usage: true },
          stop: ["never said"],
        });
        for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? "";
        expect(streamed).toStartWith(ANSWER);
        const { choices: completed } = await front.api.completions.create({
          model: MODEL,
          prompt: words(50),
          max_tokens: 5,
        });
        expect(completed[0]!.text.length).toBeGreaterThan(1);
        await quiet();
        expect(prefill.stats().handover).toMatchObject({ given: 3, failed: 0, expired: 0 });
        expect(decode.stats().handover).toMatchObject({ taken: 3, failed: 0, recomputed: 0 });
        expect(states()).toEqual(["closed", "closed"]);
        const counted = front.serving.counted();
        for (const name of ["smg_pd_prefill_duration_seconds", "smg_pd_ttft_seconds"])
          expect(counted[name]).toMatchObject([{ labels: ["pd", MODEL, flavor.flavor] }]);
        const modes = counted["smg_pd_kv_connector_mode_total"]?.filter(({ value }) => value > 0);
        expect(modes ?? []).toMatchObject(
          flavor.kvConnector === undefined ? [] : [{ labels: [flavor.kvConnector], value: 3 }],
        );
      },
      { speed: "instant" },
    ));

  test.each(["prefill", "decode"] as const)("the breaker of the server that fails counts, and no other: %s", (leg) =>
    withPair(flavor, async ({ front, quiet, states, ...engines }) => {
      engines[leg].setFault({ contains: "word1", fault: { kind: "status", code: "INTERNAL", message: "boom" } });
      const response = await front.post("/v1/chat/completions", CHAT);
      expect(response.status).toBe(500);
      await quiet();
      expect(states()).toEqual(leg === "prefill" ? ["open", "closed"] : ["closed", "open"]);
    }),
  );

  test("a client that leaves frees both, while the prompt is prefilled and while the answer comes", () =>
    withPair(
      flavor,
      async ({ front, prefill, decode, quiet, states }) => {
        const leaving = new AbortController();
        const asked = front.post("/v1/chat/completions", CHAT, { signal: leaving.signal }).catch(() => "left");
        await until(() => prefill.stats().engine.running === 1, "the prefill");
        leaving.abort();
        expect(await asked).toBe("left");
        await quiet();
        const stream = await front.api.chat.completions.create({ ...CHAT, max_tokens: 2000, stream: true });
        for await (const _ of stream) break;
        await quiet();
        expect(decode.stats().open).toBe(0);
        expect(states()).toEqual(["closed", "closed"]);
      },
      { prefillTps: 1000 },
    ));
});

test("vectors are refused with what is missing", () =>
  withPair(
    FLAVORS[1][1],
    async ({ front }) => {
      const reply = await front.post("/v1/embeddings", { model: MODEL, input: "hello" });
      expect([reply.status, await reply.text()]).toEqual([503, expect.stringContaining("one without a role")]);
    },
    { speed: "instant" },
  ));

test("several choices, or prompts, are left to the server of vLLM that decodes", () =>
  withPair(
    FLAVORS[1][1],
    async ({ front, prefill, decode }) => {
      const { choices } = await front.api.chat.completions.create({ ...CHAT, n: 2, temperature: 1 });
      expect(choices).toHaveLength(2);
      await front.api.completions.create({ model: MODEL, prompt: ["one", "two"], max_tokens: 3 });
      expect(prefill.stats().received).toBe(0);
      expect(decode.requests().map(({ promptTokens }) => promptTokens)).toHaveLength(3); // a chat, and two prompts
      expect(front.board.bookings()).toBe(0);
    },
    { speed: "instant" },
  ));

test.each(FLAVORS)("%s: another server that prefills takes over, with the same one that decodes", async (_, flavor) => {
  const common = { dialect: "openai", ...flavor, speed: "instant" } as const;
  const start = (role: "prefill" | "decode", more: Partial<SimulatorOptions> = {}) =>
    startSimulator(settings({ ...common, role, ...more }), { tokenizerCacheDir: TABLES });
  const engines = [await start("prefill", { engineId: "a" }), await start("prefill", { engineId: "b" })];
  engines.push(await start("decode"));
  const labels = (id: string): Record<string, string> =>
    flavor.kvConnector === "mooncake" ? { kv_connector: "MooncakeConnector", kv_engine_id: id } : {};
  const front = await startHttpGateway({
    http: engines.map(({ port }) => `http://127.0.0.1:${port}`),
    special: [
      { role: "prefill", bootstrapPort: engines[0]!.bootstrapPort, labels: labels("a") },
      { role: "prefill", bootstrapPort: engines[1]!.bootstrapPort, labels: labels("b") },
      { role: "decode" },
    ],
    args: ["--retry-initial-backoff-ms", "1", "--cb-failure-threshold", "1"],
  });
  try {
    engines[0]!.setFault({ contains: "word1", fault: { kind: "status", code: "INTERNAL", message: "boom" } });
    for (let i = 0; i < 3; i++) {
      const messages = [{ role: "user" as const, content: `${i} ${words(100)}` }];
      const { choices } = await front.api.chat.completions.create({ ...CHAT, messages });
      expect(choices[0]!.message.content).toStartWith(ANSWER);
    }
    expect(engines[2]!.stats().handover.taken).toBe(3);
    expect(front.slots.slice(1).map((slot) => front.board.breaker.state(slot))).toEqual(["closed", "closed"]);
    expect(front.board.bookings()).toBe(0);
    expect(engines[0]!.stats().received).toBeGreaterThan(0);
    expect(front.board.breaker.state(front.slots[0]!)).not.toBe("closed");
  } finally {
    await front.stop();
    for (const engine of engines) await engine.stop();
  }
});

test.each(FLAVORS)("%s: a cache that does not get over is made at another server", async (_, flavor) => {
  const common = { dialect: "openai", ...flavor, speed: "instant", kvLeaseSecs: 1, handoverTimeoutSecs: 1 } as const;
  const roles = ["prefill", "prefill", "decode", "decode"] as const;
  const engines = await Promise.all(
    roles.map((role, at) =>
      startSimulator(settings({ ...common, role, engineId: String(at) }), { tokenizerCacheDir: TABLES }),
    ),
  );
  const labels = (at: number): Record<string, string> =>
    flavor.kvConnector === "mooncake" ? { kv_connector: "MooncakeConnector", kv_engine_id: String(at) } : {};
  const front = await startHttpGateway({
    http: engines.map(({ port }) => `http://127.0.0.1:${port}`),
    special: roles.map((role, at) => ({
      role,
      bootstrapPort: engines[at]!.bootstrapPort,
      labels: labels(at),
      ...(at === 0 && { priority: 90 }), // everything goes there first
    })),
    args: ["--retry-initial-backoff-ms", "1"],
  });
  try {
    engines[0]!.setFault({ contains: "word1", fault: { kind: "transfer-fail", message: "boom" } });
    for (let i = 0; i < 3; i++) {
      const messages = [{ role: "user" as const, content: `${i} ${words(100)}` }];
      const { choices } = await front.api.chat.completions.create({ ...CHAT, messages });
      expect(choices[0]!.message.content).toStartWith(ANSWER);
    }
    expect(engines[1]!.stats().handover.given).toBe(3);
    await until(() => front.board.bookings() === 0, "every place is given back");
  } finally {
    await front.stop();
    for (const engine of engines) await engine.stop();
  }
});

test("vLLM: what only the half that decodes can refuse is refused, and its cache is not kept for long", () =>
  withPair(
    FLAVORS[1][1],
    async ({ front, quiet, states }) => {
      const response = await front.post("/v1/chat/completions", { ...CHAT, n: -1 });
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("n must be at least 1")]);
      await quiet();
      expect(states()).toEqual(["closed", "closed"]);
    },
    { speed: "instant" },
  ));

test("vLLM: what is prefilled for a client that leaves between the halves is let go at once", () =>
  withPair(
    FLAVORS[1][1],
    async ({ front, prefill, quiet }) => {
      for (let i = 0; i < 60; i++) {
        const leaves = AbortSignal.timeout(1 + (i % 12));
        const init = { signal: leaves };
        const asked = front.post("/v1/chat/completions", { ...CHAT, stream: i % 2 === 0 }, init);
        await asked.then((response) => response.text()).catch(() => {});
      }
      await quiet();
      expect(prefill.stats().handover).toMatchObject({ failed: 0, expired: 0 });
    },
    { speed: "instant", kvLeaseSecs: 30 },
  ));

test("vLLM: a half that prefills does nothing else, however a client spells its members", () =>
  withPair(
    FLAVORS[1][1],
    async ({ front, prefill, decode, quiet }) => {
      const body = JSON.stringify({ ...CHAT, stream: true, max_tokens: 7, stop: ["never said"] });
      const spelled = body.replace('"max_tokens"', '"max\\u005ftokens"').replace('"stream"', '"\\u0073tream"');
      const response = await front.post("/v1/chat/completions", spelled);
      expect(await response.text()).toContain("[DONE]");
      await quiet();
      expect([prefill.stats().tokensSent, decode.stats().tokensSent]).toEqual([1, 7]);
      expect([prefill.stats().handover.given, decode.stats().handover.taken]).toEqual([1, 1]);
    },
    { speed: "instant" },
  ));

test("SGLang: a half that has not ended is ended when the answer has", () =>
  withPair(FLAVORS[0][1], async ({ front, prefill, quiet }) => {
    prefill.setFault({ contains: "word1", fault: { kind: "hang" } });
    const prompt = [words(10), words(20)]; // of several nothing is handed over
    const { choices } = await front.api.completions.create({ model: MODEL, prompt, max_tokens: 5 });
    expect(choices).toHaveLength(2);
    expect(prefill.stats().open).toBeGreaterThan(0);
    await quiet();
  }));

test("SGLang: several choices of a prompt have one hand-over", () =>
  withPair(
    FLAVORS[0][1],
    async ({ front, prefill, decode, quiet }) => {
      const { choices } = await front.api.chat.completions.create({ ...CHAT, temperature: 1, n: 2 });
      expect(choices).toHaveLength(2);
      await quiet();
      expect([prefill.stats().handover.given, decode.stats().handover.taken]).toEqual([1, 1]);
    },
    { speed: "instant" },
  ));

test("what is missing is told", async () => {
  const engine = await startSimulator(settings({ dialect: "openai", flavor: "sglang", role: "prefill" }), {
    tokenizerCacheDir: TABLES,
  });
  const front = await startHttpGateway({ http: [`http://127.0.0.1:${engine.port}`], special: [{ role: "prefill" }] });
  try {
    const response = await front.post("/v1/chat/completions", CHAT);
    expect(response.status).toBe(503);
    expect(await response.text()).toContain("it has workers that prefill, and none that decodes");
  } finally {
    await front.stop();
    await engine.stop();
  }
});
