/** What engines tell of their caches over real connections: the prefix index must equal the caches, block for block. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../src/config/resolve.ts";
import { serveOptions } from "../../src/config/serve-options.ts";
import { createEngine } from "../../src/engines/create.ts";
import type { Engine } from "../../src/engines/engine.ts";
import { type FleetControl, startFleetControl } from "../../src/fleet/control.ts";
import { staticSource } from "../../src/fleet/discovery/static.ts";
import type { FleetSnapshot, WorkerEntry } from "../../src/fleet/snapshot.ts";
import { chainRoot } from "../../src/routing/chain.ts";
import type { RankContents } from "../../src/simulator/kv/contents.ts";
import { simulatorOptions } from "../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { FleetBoard } from "../../src/threads/fleet-board.ts";
import { PrefixBoard } from "../../src/threads/prefix-board.ts";
import type { ChainKeys, PrefixReader } from "../../src/threads/prefix-types.ts";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { testCompute } from "../support/control.ts";
import { chainOf } from "../support/prefix.ts";
import { settle } from "./simulator/harness.ts";

setDefaultTimeout(60_000);

const MODEL = "collie-demo";
const folder = mkdtempSync(join(tmpdir(), "collie-kv-events-"));
for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, name), bytes);
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function simulated(args: readonly string[]): Promise<Simulator> {
  const all = ["--port", "0", "--speed", "instant", ...args];
  const simulator = await startSimulator(resolveOptions(simulatorOptions, { args: all, env: {} }).values);
  closing.push(() => simulator.stop());
  return simulator;
}

interface Fleet {
  readonly index: PrefixBoard;
  readonly reader: PrefixReader;
  /** Entries of the worker at a port, one for each rank. */
  workers(port: number): readonly WorkerEntry[];
  counted(name: string): number;
  remove(id: string): Promise<unknown>;
  readonly lines: string[];
}

/** There is another worker of the model, which gets no requests: the events of a lone one are of no use to anybody. */
async function fleet(
  engines: readonly string[],
  args: readonly string[] = [],
  labels?: Readonly<Record<string, string>>,
): Promise<Fleet> {
  const { port: besides } = await simulated([]);
  const urls = [...engines, `grpc://127.0.0.1:${besides}`];
  const { values: config } = resolveOptions(serveOptions, {
    args: ["--worker-urls", ...urls, "--model-path", folder, ...args],
    env: {},
  });
  const index = PrefixBoard.create(1, 16);
  const lines: string[] = [];
  const log = createLogger({ level: "debug", json: false, write: (line) => lines.push(line) });
  const seen: FleetSnapshot[] = [];
  const threads = { apply: async (snapshot: FleetSnapshot) => void seen.push(snapshot), lost: () => {} };
  const control: FleetControl = startFleetControl(config, FleetBoard.create(1), log, threads, {
    cacheDir: folder,
    compute: testCompute,
    prefix: index.writer(),
    ...(labels && { sources: [staticSource(urls.map((url, i) => (i === 0 ? { url, labels } : { url })))] }),
  });
  closing.push(() => control.close());
  const workers = (port: number) => (seen.at(-1)?.workers ?? []).filter(({ url }) => url.includes(`:${port}`));
  await until(() => urls.every((url) => workers(Number(url.split(":").at(-1))).length > 0), "the workers");
  await settle(); // subscriptions are made when a worker is ready
  return {
    index,
    reader: index.reader(0),
    workers,
    counted: (name) => (control.counted()[name] ?? []).reduce((sum, { value }) => sum + value, 0),
    remove: (id) => control.admin.removeWorker(id),
    lines,
  };
}

async function until(condition: () => boolean, what: string | (() => string)): Promise<void> {
  for (const start = Date.now(); !condition(); await Bun.sleep(10))
    if (Date.now() - start > 25_000) throw new Error(`not in time: ${typeof what === "string" ? what : what()}`);
}

/** For each block of a cache the chain that ends with it, in blocks of the engine's size. */
function chainsOf({ blocks, blockSize }: RankContents): readonly ChainKeys[] {
  const byHash = new Map<string, readonly number[]>();
  for (const { hash, parent, tokenIds } of blocks)
    byHash.set(hash, [...(parent === null ? [] : byHash.get(parent)!), ...tokenIds]);
  return [...byHash.values()].map((ids) => chainOf(chainRoot(MODEL, blockSize), Uint32Array.from(ids), blockSize));
}

const lastKey = ({ keys }: ChainKeys): string => keys.slice(-2).join();

const holds = (reader: PrefixReader, chain: ChainKeys, member: number): boolean =>
  reader.match(chain).depth(member) === chain.count;

/** How the index differs from the caches of some engines, each with the members of its ranks. */
function differences({ reader, index }: Fleet, caches: readonly (readonly [RankContents, number])[]): string {
  const problems: string[] = [];
  const all = new Set<string>();
  for (const [contents, member] of caches) {
    const chains = chainsOf(contents);
    for (const chain of chains) all.add(lastKey(chain));
    const missing = chains.filter((chain) => !holds(reader, chain, member)).length;
    if (missing > 0) problems.push(`${missing} of ${chains.length} blocks of member ${member} are missing`);
  }
  const writer = index.writer();
  writer.sweep(index.capacity, Date.now()); // what nobody holds takes its place until then
  const { blocks } = writer.stats();
  if (blocks !== all.size) problems.push(`${blocks} blocks instead of ${all.size}`);
  return problems.join("; ");
}

const members = (workers: readonly WorkerEntry[]): number[] => workers.map(({ member }) => member!);

/** The index comes to equal the caches, rank by rank, of the engines that are given. */
async function agrees(of: Fleet, ...engines: readonly Simulator[]): Promise<void> {
  const now = () =>
    differences(
      of,
      engines.flatMap((engine) => {
        const its = members(of.workers(engine.port));
        return engine.blocks().map((contents, rank) => [contents, its[rank] ?? its[0]!] as const);
      }),
    );
  await until(() => now() === "", now);
}

/** How many blocks of an engine's cache the index says that it holds. */
const held = (of: Fleet, engine: Simulator): number =>
  engine.blocks().flatMap((contents, rank) => {
    const its = members(of.workers(engine.port));
    return chainsOf(contents).filter((chain) => holds(of.reader, chain, its[rank] ?? its[0]!));
  }).length;

/** A stream of random prompts that share beginnings. */
function prompts(seed: number): () => Uint32Array {
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  return () => {
    const topic = random(6);
    const shared = 16 * random(12) + random(16);
    const own = 1 + random(80);
    const ids = new Uint32Array(shared + own);
    for (let i = 0; i < shared; i++) ids[i] = 100 + ((topic * 7919 + i * 31) % 900);
    for (let i = shared; i < ids.length; i++) ids[i] = 1000 + random(1000);
    return ids;
  };
}

let requests = 0;
function generate(engine: Engine, tokenIds: Uint32Array, maxTokens: number, rank?: number): Promise<void> {
  return new Promise((resolve, reject) => {
    engine.generate(
      {
        requestId: `kv-${++requests}`,
        tokenIds,
        sampling: { maxTokens, ignoreEos: true, temperature: 0 },
        stream: true,
        ...(rank !== undefined && { dataParallelRank: rank }),
      },
      {
        onChunk() {},
        onFinish() {},
        onIdle() {},
        onEnd: (error) => (error === undefined ? resolve() : reject(error)),
      },
    );
  });
}

function engineAt(port: number, dialect: string): Engine {
  const engine = createEngine({ url: `grpc://127.0.0.1:${port}`, dialect }, { transport: "framing", keepaliveMs: 0 });
  closing.push(() => engine.close());
  return engine;
}

async function traffic(engine: Engine, next: () => Uint32Array, count: number, ranks = 1): Promise<void> {
  for (let i = 0; i < count; i++) await generate(engine, next(), 1 + (i % 30), ranks > 1 ? i % ranks : undefined);
}

/** Small enough that much is evicted. */
const SMALL = ["--kv-tokens", "2048", "--context-length", "512"];

describe.each(["framing", "grpc-js"])("over %s", (transport) => {
  test.each(["vllm", "sglang", "tokenspeed"])(
    "%s: requests, evictions, a flush, a gap, a restart",
    async (dialect) => {
      const simulator = await simulated(["--dialect", dialect, ...SMALL]);
      const other = await simulated(["--dialect", dialect, ...SMALL]);
      const urls = [simulator, other].map(({ port }) => `grpc://127.0.0.1:${port}`);
      const of = await fleet(urls, ["--engine-transport", transport, "--health-check-interval-secs", "1"]);
      const [engine, quiet] = [engineAt(simulator.port, dialect), engineAt(other.port, dialect)];
      const next = prompts(1);
      await traffic(quiet, next, 5);
      await traffic(engine, next, 60);
      await agrees(of, simulator, other);
      expect(of.workers(simulator.port)[0]).toMatchObject({
        sendsEvents: true,
        blockSize: simulator.blocks()[0]!.blockSize,
      });
      expect(of.counted("collie_kv_events_total")).toBeGreaterThan(500);

      await engine.flushCache(5, 5000);
      await traffic(engine, next, 10);
      await agrees(of, simulator, other);

      // the servicers of today end the stream at a gap
      const before = of.counted("smg_kv_event_subscription_failures_total");
      simulator.setFault({ fault: { kind: "kv-gap" }, times: 1 });
      await traffic(engine, next, 3);
      await until(() => of.counted("smg_kv_event_subscription_failures_total") > before, "the gap");
      await settle();
      expect(simulator.blocks()[0]!.blocks.length).toBeGreaterThan(0);
      expect(held(of, simulator)).toBe(0);
      expect(held(of, other)).toBe(other.blocks()[0]!.blocks.length);
      // what was there before is known no more, until it is told anew
      await engine.flushCache(5, 5000);
      await traffic(engine, next, 20);
      await agrees(of, simulator, other);

      await simulator.restart({ blockSize: 32 });
      await until(() => of.lines.some((line) => line.includes("another engine answers")), "the other engine");
      await until(() => of.workers(simulator.port)[0]?.blockSize === 32, "its registration");
      await settle(50);
      await traffic(engineAt(simulator.port, dialect), next, 30);
      await agrees(of, simulator, other);
    },
    60_000,
  );
});

test("vllm of the first release, which has no loads among its events and numbers that go on", async () => {
  const simulator = await simulated(["--dialect", "vllm", "--protocol", "0.4.14", ...SMALL]);
  const of = await fleet([`grpc://127.0.0.1:${simulator.port}`]);
  const engine = engineAt(simulator.port, "vllm");
  const next = prompts(2);
  await traffic(engine, next, 30);
  await agrees(of, simulator);
  simulator.setFault({ fault: { kind: "kv-gap" }, times: 1 });
  await traffic(engine, next, 10);
  await until(() => of.counted("collie_kv_event_gaps_total") === 1, "the gap");
  expect(of.counted("smg_kv_event_subscription_failures_total")).toBe(0);
  simulator.clearFaults();
  await generate(
    engine,
    Uint32Array.from({ length: 40 }, (_, i) => 3000 + i),
    1,
  );
  await until(() => held(of, simulator) >= 2, "what came after it");
});

test("sglang with pages of one token: the index has whole blocks of sixteen of them", async () => {
  const simulator = await simulated(["--dialect", "sglang", "--block-size", "1", "--context-length", "512"]);
  const of = await fleet([`grpc://127.0.0.1:${simulator.port}`]);
  const engine = engineAt(simulator.port, "sglang");
  const first = prompts(3)();
  await generate(engine, first, 40);
  await until(() => of.workers(simulator.port)[0]?.blockSize === 16, "its size");
  const [member] = members(of.workers(simulator.port));
  const depth = (ids: Uint32Array) => of.reader.match(chainOf(chainRoot(MODEL, 16), ids, 16)).depth(member!);
  await until(() => depth(first) === Math.floor(first.length / 16), "the prompt");
  // the next turn of the same talk goes on in the middle of a block
  const longer = Uint32Array.from([...first, ...prompts(4)(), ...prompts(5)()]);
  await generate(engine, longer, 5);
  await until(() => depth(longer) === Math.floor(longer.length / 16), "the longer prompt");
  await engine.flushCache(5, 5000);
  await generate(engine, prompts(6)(), 5);
  await until(() => depth(longer) === 0, "the flush");
});

describe("ranks", () => {
  const RANKS = ["--dialect", "vllm", "--data-parallel-size", "3", ...SMALL];

  test("are caches of their own with --dp-aware, and leave together", async () => {
    const simulator = await simulated(RANKS);
    const of = await fleet([`grpc://127.0.0.1:${simulator.port}`], ["--dp-aware"]);
    expect(of.workers(simulator.port).map(({ rank }) => rank)).toEqual([0, 1, 2]);
    expect(new Set(of.workers(simulator.port).map(({ slot }) => slot)).size).toBe(3);
    await traffic(engineAt(simulator.port, "vllm"), prompts(7), 60, 3);
    await agrees(of, simulator);
    const [id] = of.workers(simulator.port).map((worker) => worker.id);
    const was = members(of.workers(simulator.port));
    await of.remove(id!);
    await until(() => of.workers(simulator.port).length === 0, "its leave");
    const chains = simulator.blocks().flatMap(chainsOf);
    expect(was.flatMap((member) => chains.filter((chain) => holds(of.reader, chain, member)))).toEqual([]);
  });

  test("are one cache without", async () => {
    const simulator = await simulated(RANKS);
    const of = await fleet([`grpc://127.0.0.1:${simulator.port}`]);
    expect(of.workers(simulator.port)).toHaveLength(1);
    await traffic(engineAt(simulator.port, "vllm"), prompts(8), 60, 3);
    await agrees(of, simulator);
  });
});

test("an engine that publishes nothing is asked once, and stays a guess", async () => {
  const simulator = await simulated(["--dialect", "vllm", "--no-kv-events"]);
  const of = await fleet([`grpc://127.0.0.1:${simulator.port}`]);
  await traffic(engineAt(simulator.port, "vllm"), prompts(9), 5);
  await until(() => of.counted("smg_kv_event_subscription_failures_total") > 0, "its refusal");
  await settle(50);
  expect(of.counted("smg_kv_event_subscription_failures_total")).toBe(1);
  expect(of.workers(simulator.port)[0]?.sendsEvents ?? false).toBe(false);
});

test("a subscription that breaks is made anew, and begins from nothing", async () => {
  const simulator = await simulated(["--dialect", "tokenspeed", ...SMALL]);
  const of = await fleet([`grpc://127.0.0.1:${simulator.port}`]);
  const engine = engineAt(simulator.port, "tokenspeed");
  const next = prompts(10);
  await traffic(engine, next, 20);
  await agrees(of, simulator);
  simulator.setFault({ fault: { kind: "kv-reset" }, times: 1 });
  await traffic(engine, next, 2);
  await until(() => of.counted("smg_kv_event_subscription_failures_total") > 0, "its end");
  await until(() => of.workers(simulator.port)[0]?.sendsEvents === false, "the threads");
  await settle(50); // it is made anew after a moment
  await engine.flushCache(5, 5000);
  await traffic(engine, next, 20);
  await agrees(of, simulator);
  expect(of.workers(simulator.port)[0]?.sendsEvents).toBe(true);
});

describe("over ZeroMQ", () => {
  const ZMQ = ["--dialect", "openai", "--kv-events-zmq", "0", "--kv-events-replay", "0", ...SMALL];

  async function ask(port: number, next: () => Uint32Array, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const response = await fetch(`http://127.0.0.1:${port}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, prompt: [...next()], max_tokens: 1 + (i % 30) }),
      });
      expect(response.status).toBe(200);
      await response.arrayBuffer();
    }
  }
  const endpoints = ({ kvPorts }: Simulator): string[] => [
    "--kv-events-endpoint",
    `tcp://*:${kvPorts!.port}`,
    "--kv-events-replay-endpoint",
    `tcp://127.0.0.1:${kvPorts!.replayPort}`,
  ];

  test.each(["maps", "arrays"])(
    "vllm, %s: what was before the subscription, evictions, a gap that is made good",
    async (form) => {
      const simulator = await simulated([...ZMQ, "--flavor", "vllm", "--kv-events-form", form]);
      const next = prompts(11);
      await ask(simulator.port, next, 5);
      const of = await fleet([`http://127.0.0.1:${simulator.port}`], endpoints(simulator));
      await agrees(of, simulator);
      await ask(simulator.port, next, 40);
      await agrees(of, simulator);
      simulator.setFault({ fault: { kind: "kv-gap" }, times: 1 });
      await ask(simulator.port, next, 5);
      await agrees(of, simulator);
      expect(of.counted("collie_kv_event_gaps_total")).toBe(0);
      simulator.clearFaults();
      await simulator.restart();
      await ask(simulator.port, next, 10);
      await agrees(of, simulator);
    },
    60_000,
  );

  test("a gap that nobody can make good clears the worker", async () => {
    const simulator = await simulated([...ZMQ.slice(0, 4), "--flavor", "vllm", ...SMALL]);
    const of = await fleet([`http://127.0.0.1:${simulator.port}`], endpoints(simulator).slice(0, 2));
    const next = prompts(12);
    await ask(simulator.port, next, 20);
    simulator.setFault({ fault: { kind: "kv-gap" }, times: 1 });
    await ask(simulator.port, next, 5);
    await until(() => of.counted("collie_kv_event_gaps_total") === 1, "the gap");
  });

  test.each(["vllm", "sglang"])(
    "%s over gRPC whose publisher is named tells what was before the subscription, too",
    async (dialect) => {
      const zmq = ["--kv-events-zmq", "0", "--kv-events-replay", "0"];
      const simulator = await simulated(["--dialect", dialect, ...zmq, ...SMALL]);
      const engine = engineAt(simulator.port, dialect);
      const next = prompts(15);
      await traffic(engine, next, 10);
      const { port, replayPort } = simulator.kvPorts!;
      const labels = { kv_events: `tcp://*:${port}`, kv_events_replay: `tcp://*:${replayPort}` };
      const of = await fleet([`grpc://127.0.0.1:${simulator.port}`], [], labels);
      await agrees(of, simulator);
      await traffic(engine, next, 40);
      await agrees(of, simulator);
      simulator.setFault({ fault: { kind: "kv-gap" }, times: 1 });
      await traffic(engine, next, 5);
      await agrees(of, simulator);
    },
  );

  test("a server with several names for one model has one cache, and its adapters have a part of that", async () => {
    const simulator = await simulated([...ZMQ, "--flavor", "vllm"]);
    const card = { object: "model", owned_by: "vllm", max_model_len: 512 };
    const names = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname !== "/v1/models") return fetch(`http://127.0.0.1:${simulator.port}${pathname}`);
        const data = [
          { ...card, id: "the-last-of-names", root: "/models/demo", parent: null },
          { ...card, id: MODEL, root: "/models/demo", parent: null },
          { ...card, id: "tuned", root: "/adapters/tuned", parent: "the-last-of-names" },
          { ...card, id: "another", root: "/models/another", parent: null },
        ];
        return Response.json({ object: "list", data });
      },
    });
    closing.push(() => names.stop(true));
    const of = await fleet([`http://127.0.0.1:${names.port}`], endpoints(simulator));
    await ask(simulator.port, prompts(14), 10);
    await until(() => simulator.blocks()[0]!.blocks.length > 0, "its blocks");
    const [member] = members(of.workers(names.port!));
    const isKnown = () =>
      simulator.blocks().every((rank) => chainsOf(rank).every((chain) => holds(of.reader, chain, member!)));
    await until(isKnown, "what it tells under its names");
    expect(of.workers(names.port!).map(({ model, cacheName }) => [model, cacheName])).toEqual([
      ["the-last-of-names", { model: MODEL }],
      [MODEL, undefined],
      ["tuned", { model: MODEL, lora: "tuned" }],
      ["another", undefined],
    ]);
  });

  test("sglang says itself where it publishes", async () => {
    const simulator = await simulated([...ZMQ, "--flavor", "sglang", "--data-parallel-size", "2"]);
    const of = await fleet([`http://127.0.0.1:${simulator.port}`]);
    const next = prompts(13);
    await ask(simulator.port, next, 30);
    await agrees(of, simulator);
    expect(of.workers(simulator.port)[0]?.facts).toMatchObject({ dataParallelSize: 2 });
  });
});
