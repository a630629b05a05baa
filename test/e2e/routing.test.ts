/** Where the compiled program sends requests: by every policy, by what clients say, and as it explains. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { BUILD_MS } from "./support/binary.ts";
import {
  eventually,
  type Program,
  start,
  startEngine,
  startGateway,
  type TestEngine,
  type TestGateway,
} from "./support/processes.ts";

const SETTINGS = ["--threads", "1", "--prometheus-port", "0", "--routing-headers"];
const ENGINE = ["--speed", "0", "--block-size", "16"];
const COUNT = 3;

interface Report {
  readonly policy: string;
  readonly chosen: string;
  readonly branch: string;
  readonly tokens: number;
  readonly blocks: number;
  readonly candidates: readonly {
    readonly id: string;
    readonly url: string;
    readonly matchedTokens: number;
    readonly isExact: boolean;
    readonly running: number;
    readonly excluded?: string;
  }[];
  readonly spans: readonly { readonly exact: readonly string[]; readonly guessed: readonly string[] }[];
}

interface Answered {
  readonly worker: string;
  readonly predicted: number;
  readonly cached: number;
}

const open: (TestGateway | TestEngine | Program)[] = [];
afterAll(async () => {
  await Promise.all(open.map((one) => one.stop()));
});

const words = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, i) => `word${(seed * 7919 + i * 31) % 9973}`).join(" ");
/** Prompts of some hundred tokens; those of one seed begin alike. */
const prompt = (seed: number, turn = 0): string => `${words(seed, 60)} ${words(1000 + turn, 4)}`;

interface World extends TestGateway {
  post(path: string, body: object, headers?: Record<string, string>): Promise<Response>;
  complete(text: string, headers?: Record<string, string>): Promise<Answered>;
  explain(body: object, headers?: Record<string, string>): Promise<Report>;
  metric(name: string): Promise<number>;
  workers(): Promise<readonly { readonly id: string; readonly url: string; readonly status: string }[]>;
}

const KEY = { authorization: "Bearer secret" };

async function gateway(engines: readonly TestEngine[], ...args: string[]): Promise<World> {
  const made = await startGateway(engines, [...SETTINGS, ...args]);
  open.push(made);
  const [, page] = await made.program.until(/metrics url=(\S+)|"metrics","url":"([^"]+)"/);
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${made.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const world: World = {
    ...made,
    post,
    async complete(text, headers) {
      const response = await post("/v1/completions", { model: made.model, prompt: text, max_tokens: 2 }, headers);
      if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
      return answered(response);
    },
    async explain(body, headers) {
      const response = await post("/routing/explain", { model: made.model, ...body }, headers);
      if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
      return (await response.json()) as Report;
    },
    async metric(name) {
      const text = await (await fetch(page!)).text();
      const lines = text.split("\n").filter((line) => line.startsWith(name));
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
    },
    async workers() {
      const list = (await (await fetch(`${made.url}/workers`, { headers: KEY })).json()) as { workers: [] };
      return list.workers;
    },
  };
  await eventually(async () => (await world.workers()).every(({ status }) => status === "ready"), 15_000);
  return world;
}

const answered = ({ headers }: Response): Answered => ({
  worker: headers.get("x-collie-worker") ?? "",
  predicted: Number(headers.get("x-collie-cached-tokens-predicted")),
  cached: Number(headers.get("x-collie-cached-tokens")),
});

let engines: TestEngine[];
beforeAll(async () => {
  engines = await Promise.all(Array.from({ length: COUNT }, () => startEngine("[]", ENGINE)));
  open.push(...engines);
}, BUILD_MS);

/** Requests by worker, of 12 that begin in four ways, with keys that belong to the beginnings. */
async function spread(world: World): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (let i = 0; i < 12; i++) {
    const key = { "x-smg-routing-key": `key ${i % 4}` };
    const { worker } = await world.complete(prompt(i % 4, i), key);
    counts.set(worker, (counts.get(worker) ?? 0) + 1);
  }
  return counts;
}

/** Whether requests that belong together always had the same worker. */
async function keepsTogether(world: World): Promise<boolean> {
  const homes = new Map<number, string>();
  for (let i = 0; i < 12; i++) {
    const { worker } = await world.complete(prompt(i % 4), { "x-smg-routing-key": `key ${i % 4}` });
    if ((homes.get(i % 4) ?? worker) !== worker) return false;
    homes.set(i % 4, worker);
  }
  return true;
}

describe("the policy", () => {
  test.each([
    ["cache_aware", true],
    ["prefix_hash", true],
    ["consistent_hashing", true],
    ["manual", true],
    ["round_robin", false],
    ["least_load", false],
    ["power_of_two", false],
    ["random", false],
    ["bucket", false],
    ["passthrough", true],
  ])(
    "%s is the one that chooses, and is told as it is",
    async (policy, isSticky) => {
      const world = await gateway(engines, "--policy", policy, "--no-kv-events");
      const counts = await spread(world);
      expect([...counts.values()].reduce((a, b) => a + b)).toBe(12);
      if (policy === "round_robin") expect([...counts.values()]).toEqual([4, 4, 4]);
      if (policy === "passthrough") expect(counts.size).toBe(1);
      if (isSticky) expect(await keepsTogether(world)).toBe(true);
      const chance = policy === "random" || policy === "power_of_two";
      for (let i = 0; i < 4 && !chance; i++) {
        const headers = { "x-smg-routing-key": `key ${i}` };
        const [told, again] = [
          await world.explain({ prompt: prompt(i, 50) }, headers),
          await world.explain({ prompt: prompt(i, 50) }, headers),
        ];
        const { worker, predicted } = await world.complete(prompt(i, 50), headers);
        expect([told.policy, told.chosen, again.chosen]).toEqual([policy, worker, worker]);
        if (policy === "cache_aware")
          expect(told.candidates.find(({ id }) => id === worker)?.matchedTokens).toBe(predicted);
      }
      expect(await world.metric(`collie_routing_choices_total{model="${world.model}",policy="${policy}"`)).toBe(
        await world.metric("smg_worker_selection_total"),
      );
      expect(await world.metric("collie_board_bookings")).toBe(0);
      await world.stop();
    },
    30_000,
  );
});

describe("cache_aware, by the workers' own word", () => {
  let world: World;
  beforeAll(async () => {
    world = await gateway(engines);
  }, BUILD_MS);

  test("predicts what the engine finds in its cache", async () => {
    const first = await world.complete(prompt(21));
    await eventually(async () => {
      const { candidates } = await world.explain({ prompt: prompt(21) });
      return candidates.some(({ id, isExact }) => id === first.worker && isExact);
    }, 10_000);
    const { tokens, blocks, spans, candidates } = await world.explain({ prompt: prompt(21) });
    const second = await world.complete(prompt(21));
    expect([second.worker, second.predicted]).toEqual([first.worker, second.cached]);
    expect(second.cached).toBeGreaterThan(tokens - 33);
    expect(blocks).toBe(Math.floor(tokens / 16));
    expect(spans[0]?.exact).toEqual([first.worker]);
    expect(candidates.filter(({ matchedTokens }) => matchedTokens > 0).map(({ id }) => id)).toEqual([first.worker]);
    const counted = (what: string) => world.metric(`collie_prefix_${what}_tokens_total`);
    expect(await counted("predicted")).toBe(second.predicted);
    expect(await counted("actual")).toBe(second.cached);
    expect(await counted("prompt")).toBe(2 * tokens);
  });

  test("is explained for texts, conversations and tokens alike, and for a GET", async () => {
    const text = prompt(22);
    const { worker } = await world.complete(text);
    const { tokens: ids } = (await (await world.post("/tokenize", { model: world.model, prompt: text })).json()) as {
      tokens: number[];
    };
    const byIds = await world.explain({ token_ids: ids });
    const byText = await world.explain({ prompt: text });
    const query = new URLSearchParams({ model: world.model, prompt: text });
    const byGet = (await (await fetch(`${world.url}/routing/explain?${query}`)).json()) as Report;
    for (const report of [byIds, byText, byGet]) {
      expect([report.chosen, report.tokens]).toEqual([worker, ids.length]);
      expect(report.candidates.length).toBe(COUNT);
    }
    const messages = [{ role: "user", content: text }];
    const told = await world.explain({ messages });
    const response = await world.post("/v1/chat/completions", { model: world.model, messages, max_tokens: 2 });
    expect(answered(response).worker).toBe(told.chosen);
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number } };
    expect(told.tokens).toBe(usage.prompt_tokens);
  });

  test("streams tell their worker, too, but not what they do not know yet", async () => {
    const body = { model: world.model, messages: [{ role: "user", content: prompt(23) }], stream: true, max_tokens: 2 };
    const response = await world.post("/v1/chat/completions", body);
    expect(response.headers.get("content-type")).toStartWith("text/event-stream");
    expect((await world.workers()).map(({ id }) => id)).toContain(answered(response).worker);
    expect(response.headers.has("x-collie-cached-tokens")).toBe(false);
    await response.text();
  });

  test("what cannot be explained says why", async () => {
    const status = async (body: object, headers = {}) =>
      (await world.post("/routing/explain", { model: world.model, ...body }, headers)).status;
    expect(await status({})).toBe(400);
    expect(await status({ prompt: "a", messages: [] })).toBe(400);
    expect(await status({ prompt: "a", model: "nobody" })).toBe(404);
    expect(await status({ messages: "no list" })).toBe(400);
    expect(await status({ prompt: "a" }, { "x-smg-target-worker": "nobody" })).toBeGreaterThanOrEqual(400);
    expect(await status({ prompt: "a" })).toBe(200);
  });

  test("a worker that was removed is not heard of any more", async () => {
    const { worker } = await world.complete(prompt(24));
    await fetch(`${world.url}/workers/${worker}`, { method: "DELETE" });
    await eventually(async () => (await world.workers()).length === COUNT - 1, 10_000);
    await eventually(async () => {
      const { candidates, spans } = await world.explain({ prompt: prompt(24) });
      return (
        candidates.length === COUNT - 1 && spans.every(({ exact, guessed }) => exact.length + guessed.length === 0)
      );
    }, 10_000);
    expect((await world.complete(prompt(24))).worker).not.toBe(worker);
  });
});

describe("what clients say", () => {
  let world: World;
  beforeAll(async () => {
    world = await gateway(engines, "--policy", "manual", "--api-key", "secret");
  }, BUILD_MS);
  test("names the worker: by its id, its URL, or its number", async () => {
    for (const { id, url } of await world.workers())
      for (const target of [id, url])
        expect((await world.complete("Hello", { ...KEY, "x-smg-target-worker": target })).worker).toBe(id);
    const numbered = await Promise.all(
      [0, 1, 2].map((at) => world.complete("Hello", { ...KEY, "x-smg-target-worker": String(at) })),
    );
    expect(new Set(numbered.map(({ worker }) => worker)).size).toBe(COUNT);
    const body = { model: world.model, prompt: "Hello", max_tokens: 1 };
    const refused = await world.post("/v1/completions", body, { ...KEY, "x-smg-target-worker": "http://nobody" });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(await refused.text()).not.toContain("127.0.0.1");
  });

  test.each([
    ["/v1/chat/completions", (session: string) => ({ prompt_cache_key: session })],
    ["/v1/completions", (session: string) => ({ prompt_cache_key: session })],
    ["/v1/responses", (session: string) => ({ prompt_cache_key: session })],
    ["/v1/messages", (session: string) => ({ metadata: { user_id: JSON.stringify({ session_id: session }) } })],
  ])("belongs together on %s stays together", async (path, more) => {
    const bodies: Record<string, object> = {
      "/v1/chat/completions": { messages: [{ role: "user", content: "Hello" }], max_tokens: 2 },
      "/v1/completions": { prompt: "Hello", max_tokens: 2 },
      "/v1/responses": { input: "Hello", max_output_tokens: 2 },
      "/v1/messages": { messages: [{ role: "user", content: "Hello" }], max_tokens: 2 },
    };
    const homes = new Map<string, Set<string>>();
    for (let i = 0; i < 12; i++) {
      const session = `session ${i % 6}`;
      const response = await world.post(path, { model: world.model, ...bodies[path], ...more(session) }, KEY);
      expect(response.status).toBe(200);
      await response.text();
      homes.set(session, (homes.get(session) ?? new Set()).add(answered(response).worker));
    }
    expect([...homes.values()].map(({ size }) => size)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test("is for those only who have the key, as is the explanation", async () => {
    expect((await world.post("/routing/explain", { prompt: "Hello" })).status).toBe(401);
    expect((await world.explain({ prompt: "Hello" }, KEY)).policy).toBe("manual");
  });
});

describe("HTTP workers", () => {
  const folder = mkdtempSync(join(tmpdir(), "collie-routing-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const looks: string[] = [];
  let url: string;

  beforeAll(async () => {
    for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, name), bytes);
    const urls: string[] = [];
    for (let i = 0; i < COUNT; i++) {
      const engine = start(["engine", "--dialect", "openai", "--flavor", "sglang", "--port", "0", "--speed", "0"]);
      open.push(engine);
      const [, its, stats] = await engine.until(/ready on (http:\S+), statistics on (http:\S+)\/stats/);
      urls.push(its!);
      looks.push(stats!);
    }
    const own = ["--model-path", folder, "--no-kv-events"];
    const program = start([
      "serve",
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      ...SETTINGS,
      ...own,
      "--worker-urls",
      ...urls,
    ]);
    open.push(program);
    [, url] = (await program.until(/ready on (http:\S+), model \S+/)) as unknown as [string, string];
    await eventually(async () => {
      const { healthy_workers: ready } = (await (await fetch(`${url}/readiness`)).json()) as {
        healthy_workers: number;
      };
      const { tokenizers } = (await (await fetch(`${url}/v1/tokenizers`)).json()) as {
        tokenizers: { name: string; status?: string }[];
      };
      return ready === COUNT && tokenizers[0]?.status === "completed";
    }, 20_000);
  }, BUILD_MS);

  const post = (path: string, body: object) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "collie-demo", max_tokens: 2, ...body }),
    });

  test.each([
    ["/v1/completions", (text: string) => ({ prompt: text })],
    ["/v1/chat/completions", (text: string) => ({ messages: [{ role: "user", content: text }] })],
  ])("get what begins as something that they had, where the gateway has the tokenizer: %s", async (path, bodyOf) => {
    const seed = path.length;
    const answers: Answered[] = [];
    for (let turn = 0; turn < 5; turn++) {
      const response = await post(path, bodyOf(prompt(seed, turn)));
      expect(response.status).toBe(200);
      await response.text();
      answers.push(answered(response));
    }
    expect(new Set(answers.map(({ worker }) => worker)).size).toBe(1);
    expect(answers.map(({ predicted }) => predicted > 100)).toEqual([false, true, true, true, true]);
    const report = (await (await post("/routing/explain", bodyOf(prompt(seed, 9)))).json()) as Report;
    expect(report.chosen).toBe(answers[0]!.worker);
    expect(report.tokens).toBeGreaterThan(100);
  });
});
