/** What clients see of workers that fail, are full or slow: in the best case nothing. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUILD_MS } from "./support/binary.ts";
import {
  chat,
  eventually,
  start,
  startEngine,
  startGateway,
  type TestEngine,
  type TestGateway,
  user,
} from "./support/processes.ts";

const SCRIPT = `
- contains: slow start
  delay_ms: 500
- contains: stops talking
  text: alpha beta gamma delta epsilon
  ms_per_token: 10
  fault: { kind: stall, after_tokens: 2 }
`;
const SETTINGS = ["--threads", "1", "--retry-initial-backoff-ms", "10", "--prometheus-port", "0"];

/** A gateway of its own for one test. */
interface World {
  readonly engines: readonly TestEngine[];
  readonly gateway: TestGateway;
  /** Values by lines of the metrics page up to the last blank. */
  metrics(): Promise<ReadonlyMap<string, number>>;
}

const open: World[] = [];

async function world(count: number, args: readonly string[] = [], engineArgs: readonly string[] = []): Promise<World> {
  const engines = await Promise.all(Array.from({ length: count }, () => startEngine(SCRIPT, engineArgs)));
  const gateway = await startGateway(engines, [...SETTINGS, ...args]);
  const [, page] = await gateway.program.until(/metrics url=(\S+)/);
  await eventually(async () => {
    const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as { workers: { status: string }[] };
    return workers.every(({ status }) => status === "ready");
  }, 15_000);
  const made: World = {
    engines,
    gateway,
    async metrics() {
      const text = await (await fetch(page!)).text();
      const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
      return new Map(
        lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
      );
    },
  };
  open.push(made);
  return made;
}

async function close({ gateway, engines }: World): Promise<void> {
  await gateway.stop();
  await Promise.all(engines.map((engine) => engine.stop()));
}

const fails = (code: string, more: object = {}) => ({ fault: { kind: "status", code, message: "no", ...more } });
const received = async ({ engines }: World) => Promise.all(engines.map(async (one) => (await one.stats()).received));
const sumOf = (values: ReadonlyMap<string, number>, start: string): number =>
  [...values].filter(([name]) => name.startsWith(start)).reduce((sum, [, value]) => sum + value, 0);

interface ErrorBody {
  readonly error: { readonly code: string };
}
const codeOf = async (response: Response): Promise<string> => ((await response.json()) as ErrorBody).error.code;

describe("every API", () => {
  const messages = user("hello");
  const TEXT: readonly [path: string, endpoint: string, body: object][] = [
    ["/v1/chat/completions", "chat", { messages, max_tokens: 3 }],
    ["/v1/completions", "completions", { prompt: "hello", max_tokens: 3 }],
    ["/v1/messages", "messages", { messages, max_tokens: 3 }],
    ["/v1/responses", "responses", { input: "hello", max_output_tokens: 3 }],
    ["/v1beta/interactions", "interactions", { input: "hello" }],
    ["/generate", "generate", { text: "hello", sampling_params: { max_new_tokens: 3 } }],
  ];
  const VECTORS: readonly [path: string, endpoint: string, body: object][] = [
    ["/v1/embeddings", "embeddings", { input: "hello" }],
    ["/v1/rerank", "rerank", { query: "hello", documents: ["a", "b"] }],
  ];
  let text: World;
  let vectors: World;
  beforeAll(async () => {
    text = await world(2, ["--disable-circuit-breaker"]);
    vectors = await world(2, ["--disable-circuit-breaker"], ["--pooling-dim", "16"]);
    open.length = 0;
  }, BUILD_MS);
  afterAll(async () => {
    if (text !== undefined) await close(text);
    if (vectors !== undefined) await close(vectors);
  }, 20_000);

  const cases = [
    ...TEXT.flatMap(([path, endpoint, body]) =>
      [false, true].map((stream) => [path, endpoint, { ...body, stream }] as const),
    ),
    ...VECTORS.map(([path, endpoint, body]) => [path, endpoint, body] as const),
  ];
  for (const [path, endpoint, body] of cases) {
    for (const code of ["INTERNAL", "RESOURCE_EXHAUSTED"]) {
      const streamed = "stream" in body && body.stream === true;
      test(`${path}${streamed ? ", streamed," : ""} goes on to another worker after ${code}`, async () => {
        const its = endpoint === "embeddings" || endpoint === "rerank" ? vectors : text;
        const [bad] = its.engines;
        const retries = async () =>
          (await its.metrics()).get(`smg_worker_retries_total{worker_type="regular",endpoint="${endpoint}"}`) ?? 0;
        const before = await retries();
        await bad!.control("/faults", fails(code));
        try {
          for (let i = 0; i < 3; i++) {
            const response = await fetch(its.gateway.url + path, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify({ model: its.gateway.model, ...body }),
            });
            const answer = await response.text();
            expect([response.status, answer.includes('"error":{')]).toEqual([200, false]);
          }
        } finally {
          await bad!.heal();
        }
        expect(await retries()).toBeGreaterThan(before);
        expect((await its.metrics()).get("collie_board_bookings")).toBe(0);
      });
    }
  }
});

describe("a worker that is full", () => {
  afterEach(async () => {
    await Promise.all(open.splice(0).map(close));
  }, 20_000);

  test("and alone: the client is told when to come again", async () => {
    const { engines, gateway } = await world(1);
    await engines[0]!.control("/faults", fails("RESOURCE_EXHAUSTED", { trailers: { "retry-after": "7" } }));
    for (const stream of [false, true]) {
      const response = await chat(gateway, { model: gateway.model, messages: user("hello"), stream });
      expect([response.status, response.headers.get("retry-after")]).toEqual([429, "7"]);
      await response.body?.cancel();
    }
    expect((await engines[0]!.stats()).received).toBe(2);
  }, 30_000);

  test("and asks for a pause gets one, while others answer", async () => {
    const its = await world(2);
    await its.engines[0]!.control("/faults", fails("RESOURCE_EXHAUSTED", { trailers: { "retry-after": "30" } }));
    for (let i = 0; i < 8; i++) {
      const response = await chat(its.gateway, { model: its.gateway.model, messages: user("hello"), max_tokens: 2 });
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(await received(its)).toEqual([1, 8]);
  }, 30_000);
});

describe("with one gateway each", () => {
  afterEach(async () => {
    await Promise.all(open.splice(0).map(close));
  }, 20_000);

  test("no more is sent again than the budget allows", async () => {
    const its = await world(2, ["--retry-budget-percent", "0", "--retry-budget-min-per-sec", "0"]);
    await its.engines[0]!.control("/faults", fails("INTERNAL"));
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++)
      statuses.push(
        (await chat(its.gateway, { model: its.gateway.model, messages: user("hello"), max_tokens: 2 })).status,
      );
    const [bad, good] = await received(its);
    expect([bad! + good!, statuses.filter((status) => status === 500).length]).toEqual([4, bad!]);
    expect(bad).toBeGreaterThan(0);
    expect((await its.metrics()).get("collie_retry_budget_denied_total")).toBe(bad!);
  }, 30_000);

  test("a circuit breaker opens, lets one request try, and closes; wrong requests do not count", async () => {
    const its = await world(1, [
      "--cb-failure-threshold",
      "3",
      "--cb-success-threshold",
      "1",
      "--cb-timeout-duration-secs",
      "1",
    ]);
    const { gateway, engines } = its;
    const ask = (text: string) => chat(gateway, { model: gateway.model, messages: user(text), max_tokens: 2 });
    await engines[0]!.control("/faults", fails("INVALID_ARGUMENT"));
    for (let i = 0; i < 5; i++) expect((await ask("hello")).status).toBe(400);
    await engines[0]!.heal();
    await engines[0]!.control("/faults", fails("INTERNAL"));
    for (let i = 0; i < 3; i++) expect((await ask("hello")).status).toBe(500);
    const refused = await ask("hello");
    expect([refused.status, await codeOf(refused)]).toEqual([503, "no_available_workers"]);
    expect(refused.headers.get("retry-after")).toBe("1");
    await engines[0]!.heal();
    expect((await engines[0]!.stats()).received).toBe(8);
    await Bun.sleep(1100);
    const tried = await Promise.all(Array.from({ length: 5 }, async () => (await ask("slow start")).status));
    expect(tried.toSorted()).toEqual([200, 503, 503, 503, 503]);
    expect(await Promise.all([1, 2, 3].map(async () => (await ask("hello")).status))).toEqual([200, 200, 200]);
    const values = await its.metrics();
    expect(sumOf(values, "smg_worker_cb_state")).toBe(0);
    expect(sumOf(values, "smg_worker_cb_transitions_total")).toBe(2);
  }, 30_000);

  test("a breaker counts streams that break off", async () => {
    const { gateway, engines } = await world(1, ["--cb-failure-threshold", "2"]);
    await engines[0]!.control("/faults", { fault: { kind: "reset", after_tokens: 2 } });
    const ask = () => chat(gateway, { model: gateway.model, messages: user("hello"), stream: true });
    for (let i = 0; i < 2; i++) expect(await (await ask()).text()).toContain('"error"');
    expect((await ask()).status).toBe(503);
  }, 30_000);

  test("a first token that does not come in time is had from another worker; a silence within ends the stream", async () => {
    const limits = ["--first-token-timeout-secs", "1", "--inter-token-timeout-secs", "1", "--disable-circuit-breaker"];
    const { gateway, engines } = await world(2, limits);
    await engines[0]!.control("/faults", { fault: "hang", contains: "hello" });
    for (let i = 0; i < 2; i++) {
      const response = await chat(gateway, { model: gateway.model, messages: user("hello"), max_tokens: 2 });
      expect(response.status).toBe(200);
      await response.text();
    }
    const stream = await chat(gateway, { model: gateway.model, messages: user("stops talking"), stream: true });
    const text = await stream.text();
    expect(text).toContain("alpha");
    expect(text).toContain('"engine_timeout"');
    expect(text).not.toContain("[DONE]");
    await eventually(async () =>
      (await Promise.all(engines.map((one) => one.stats()))).every(({ open }) => open === 0),
    );
  }, 30_000);

  test("a second worker is asked beside a slow one, where that is set", async () => {
    const its = await world(2, ["--hedge-after-ms", "100"]);
    const { gateway, engines } = its;
    await engines[0]!.control("/faults", { fault: "hang" });
    for (let i = 0; i < 2; i++) {
      const response = await chat(gateway, { model: gateway.model, messages: user("hello"), max_tokens: 2 });
      expect(response.status).toBe(200);
      await response.text();
    }
    expect((await its.metrics()).get('collie_hedges_total{result="won"}')).toBeGreaterThan(0);
    expect((await its.metrics()).get("collie_board_bookings")).toBe(0);
  }, 30_000);
});

describe("models that stand in for others", () => {
  const folder = mkdtempSync(join(tmpdir(), "collie-resilience-"));
  const file = join(folder, "collie.yaml");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("answer when the first one's workers do not, under the name that was asked for", async () => {
    writeFileSync(file, "models:\n  - id: first\n    fallbacks: [second]\n");
    const engines = await Promise.all(
      ["first", "second"].map((name) => startEngine(SCRIPT, ["--served-model-name", name])),
    );
    const gateway = await startGateway(engines, ["--threads", "1", "--config", file]);
    try {
      await eventually(async () => (await (await fetch(`${gateway.url}/v1/models`)).text()).includes("second"), 15_000);
      const ask = async (stream: boolean) => {
        const response = await chat(gateway, { model: "first", messages: user("hello"), max_tokens: 2, stream });
        const text = await response.text();
        return [response.status, response.headers.get("x-collie-model"), text.includes('"model":"first"')];
      };
      await eventually(async () => (await ask(false))[1] === "first", 15_000);
      await engines[0]!.control("/faults", fails("INTERNAL"));
      for (const stream of [false, true]) expect(await ask(stream)).toEqual([200, "second", true]);
      await engines[0]!.stop();
      for (const stream of [false, true]) expect(await ask(stream)).toEqual([200, "second", true]);
    } finally {
      await gateway.stop();
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  }, 60_000);

  test("in a circle stop the start", async () => {
    writeFileSync(file, "models:\n  - id: a\n    fallbacks: [b]\n  - id: b\n    fallbacks: [a]\n");
    const program = start(["serve", "--port", "0", "--config", file]);
    expect(await program.exited).not.toBe(0);
    expect(program.output()).toContain("a -> b -> a");
  }, 30_000);
});
