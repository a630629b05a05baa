/** What engines tell of their caches over real connections: the prefix index must equal the caches, block for block. */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../src/config/resolve.ts";
import { serveOptions } from "../../src/config/serve-options.ts";
import { createEngine } from "../../src/engines/create.ts";
import type { Engine } from "../../src/engines/engine.ts";
import { type FleetControl, startFleetControl } from "../../src/fleet/control.ts";
import type { FleetSnapshot, WorkerEntry } from "../../src/fleet/snapshot.ts";
import { chainBlock, chainRoot } from "../../src/routing/chain.ts";
import type { RankContents } from "../../src/simulator/kv/contents.ts";
import { simulatorOptions } from "../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { FleetBoard } from "../../src/threads/fleet-board.ts";
import { PrefixBoard } from "../../src/threads/prefix-board.ts";
import type { PrefixReader } from "../../src/threads/prefix-types.ts";
import { demoModelFiles } from "../../src/tokenizer/demo-model.ts";
import { testCompute } from "../support/control.ts";

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
  readonly lines: string[];
}

async function fleet(urls: readonly string[], args: readonly string[] = []): Promise<Fleet> {
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
  });
  closing.push(() => control.close());
  const workers = (port: number) => (seen.at(-1)?.workers ?? []).filter(({ url }) => url.includes(`:${port}`));
  await until(() => urls.every((url) => workers(Number(url.split(":").at(-1))).length > 0), "the workers");
  await Bun.sleep(200); // subscriptions are made when a worker is ready
  return {
    index,
    reader: index.reader(0),
    workers,
    counted: (name) => (control.counted()[name] ?? []).reduce((sum, { value }) => sum + value, 0),
    lines,
  };
}

async function until(condition: () => boolean, what: string | (() => string)): Promise<void> {
  for (const start = Date.now(); !condition(); await Bun.sleep(10))
    if (Date.now() - start > 15_000) throw new Error(`not in time: ${typeof what === "string" ? what : what()}`);
}

/** Keys of all blocks of a cache, in our chain, in blocks of the engine's size. */
function keysOf({ blocks, blockSize }: RankContents): readonly Int32Array[] {
  const root = chainRoot(MODEL, blockSize);
  const byHash = new Map<string, Int32Array>();
  for (const { hash, parent, tokenIds } of blocks) {
    const before = parent === null ? root : byHash.get(parent)!;
    const key = new Int32Array(2);
    chainBlock(before[0]!, before[1]!, Uint32Array.from(tokenIds), 0, blockSize, key);
    byHash.set(hash, key);
  }
  return [...byHash.values()];
}

const holds = (reader: PrefixReader, keys: Int32Array, member: number): boolean =>
  reader.match({ keys, count: 1, blockSize: 16 }).depth(member) === 1;

/** How the index differs from the caches of some engines, each with the members of its ranks. */
function differences({ reader, index }: Fleet, caches: readonly (readonly [RankContents, number])[]): string {
  const problems: string[] = [];
  const all = new Set<string>();
  for (const [contents, member] of caches) {
    const keys = keysOf(contents);
    for (const key of keys) all.add(key.join());
    const missing = keys.filter((key) => !holds(reader, key, member)).length;
    if (missing > 0) problems.push(`${missing} of ${keys.length} blocks of member ${member} are missing`);
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
    return keysOf(contents).filter((key) => holds(of.reader, key, its[rank] ?? its[0]!));
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
      await Bun.sleep(200);
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
      await Bun.sleep(500);
      await traffic(engineAt(simulator.port, dialect), next, 30);
      await agrees(of, simulator, other);
    },
    60_000,
  );
});
