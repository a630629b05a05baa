/** The prefix index against a radix tree of texts, on the same prompts. */
import { parseArgs } from "node:util";
import { prefixIndex } from "../../src/routing/prefix-index.ts";
import { PrefixBoard } from "../../src/threads/prefix-board.ts";
import type { RootKey } from "../../src/threads/prefix-types.ts";
import { describeMachine, machineText } from "../lab/machine.ts";
import { table, writeResult } from "../lab/output.ts";
import { BLOCK, BLOCKS, KINDS, MODEL, routingData, TOKENS, tell, WORKERS } from "./index-data.ts";
import { RadixTree } from "./radix.ts";

const USAGE = `npm run bench:routing-index -- [--rounds 400] [--no-write]

  --rounds N   prompts of each kind that are timed
  --no-write   print only; else bench/results gets a Markdown and a JSON file
`;

/** Share of the places for engines' hashes that is in use. */
const ENGINE_LOAD = 0.8;
/** Share of the places for blocks that the memory is sized for. */
const LOAD = 0.88;
const WARM_UP = 100;

/** What this machine does now: nanoseconds of a multiplication that waits for the one before, and of a read from 256 MB that does. */
function calibrate(): { multiply: number; read: number } {
  const memory = new Int32Array(1 << 26).fill(1);
  let state = 1;
  const timed = (steps: number, step: (i: number) => void) => {
    const started = Bun.nanoseconds();
    for (let i = 0; i < steps; i++) step(i);
    return (Bun.nanoseconds() - started) / steps;
  };
  const multiply = () => timed(2e7, (i) => (state = Math.imul(state ^ i, 0x9e3779b1)));
  const read = () => timed(1e6, () => (state = (Math.imul(state, 1664525) + 1013904223 + memory[state >>> 6]!) | 0));
  multiply();
  read();
  return { multiply: multiply(), read: read() };
}

const at = (times: readonly number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)]! / 1000;

/** Room for so many blocks: megabytes as the flag has them. */
function megabytesFor(blocks: number): number {
  let megabytes = 1;
  while (PrefixBoard.create(1, megabytes).capacity * LOAD < blocks) megabytes++;
  return megabytes;
}

function measure(rounds: number) {
  const data = routingData(1234);
  const board = PrefixBoard.create(1, megabytesFor(data.blocks));
  const writer = board.writer();
  const index = prefixIndex(board, 0);
  for (let worker = 0; worker < WORKERS; worker++) writer.setExact(writer.claim(worker, 0), true);
  const tree = new RadixTree();
  data.fill(index, writer, tree);
  const root = index.root(MODEL, BLOCK);
  const depths = new Int32Array(WORKERS);
  const characters = new Int32Array(WORKERS);

  const byIndex = (ids: Uint32Array) => {
    const match = index.match(index.chain(root, ids, BLOCK));
    for (let worker = 0; worker < WORKERS; worker++) depths[worker] = match.depth(worker);
  };
  const time = (work: () => void) => {
    const started = Bun.nanoseconds();
    work();
    return Bun.nanoseconds() - started;
  };
  const lookUps = KINDS.map((kind) => {
    const [ours, chain, texts]: [number[], number[], number[]] = [[], [], []];
    let checked = 0;
    for (let i = -WARM_UP; i < rounds; i++) {
      const { ids, text } = data.ask(kind);
      const one = () => time(() => byIndex(ids));
      const other = () => time(() => tree.match(text, characters));
      // who goes first finds other things in the processor's cache
      const first = i % 2 === 0 ? one() : other();
      const second = i % 2 === 0 ? other() : one();
      const hashed = time(() => index.chain(root, ids, BLOCK));
      for (let worker = 0; worker < WORKERS; worker++)
        if (depths[worker]! > 0 === characters[worker]! > BLOCK * 7) checked++;
      if (i < 0) continue;
      ours.push(i % 2 === 0 ? first : second);
      texts.push(i % 2 === 0 ? second : first);
      chain.push(hashed);
    }
    const agreed = checked / ((rounds + WARM_UP) * WORKERS);
    if (agreed < 0.99) throw new Error(`index and tree agree on ${agreed} of the workers only`);
    return {
      kind,
      index_us: at(ours, 0.5),
      index_p90_us: at(ours, 0.9),
      chain_us: at(chain, 0.5),
      tree_us: at(texts, 0.5),
      tree_p90_us: at(texts, 0.9),
      ratio: at(texts, 0.5) / at(ours, 0.5),
      agreed,
    };
  });
  const stats = writer.stats();
  // both as they do when a request is sent: look up, then write it down for the worker it went to
  const routed = KINDS.map((kind) => {
    const [ours, texts]: [number[], number[]] = [[], []];
    for (let i = 0; i < rounds; i++) {
      const { ids, text } = data.ask(kind);
      const worker = i % WORKERS;
      ours.push(
        time(() => {
          byIndex(ids);
          index.promise(index.chain(root, ids, BLOCK), depths[worker]!, worker, Date.now());
        }),
      );
      texts.push(
        time(() => {
          tree.match(text, characters);
          tree.insert(text, worker, i);
        }),
      );
    }
    return { kind, index_us: at(ours, 0.5), tree_us: at(texts, 0.5), ratio: at(texts, 0.5) / at(ours, 0.5) };
  });
  return { blocks: data.blocks, stats, events: events(board.capacity, rounds), nodes: tree.nodes, lookUps, routed };
}

/** Nanoseconds for each block of a prompt that a cache stores, and then removes again, with other blocks in half of the places. */
function events(capacity: number, rounds: number): { stored: number; removed: number } {
  const board = PrefixBoard.create(1, megabytesFor(capacity));
  const writer = board.writer();
  const caches = Array.from({ length: WORKERS }, (_, worker) => writer.cache(writer.claim(worker, 0)));
  const keys = new Int32Array(BLOCKS * 2);
  const blocks = 2 * Math.ceil(capacity / 4 / BLOCKS) * BLOCKS;
  for (let first = 0; first < blocks; first += BLOCKS) {
    crypto.getRandomValues(keys);
    tell(caches[(first / BLOCKS) % WORKERS]!, keys, BLOCKS, true);
  }
  const [stored, removed]: [number[], number[]] = [[], []];
  const ids = new Uint32Array(TOKENS);
  for (let i = -WARM_UP; i < rounds; i++) {
    const cache = caches[(i + WARM_UP) % WORKERS]!;
    crypto.getRandomValues(ids);
    crypto.getRandomValues(keys); // the engine's hashes
    let started = Bun.nanoseconds();
    let position = -1;
    let parent: RootKey = [1, 2];
    for (let from = 0; from < BLOCKS; from += cache.mostTold) {
      const count = Math.min(cache.mostTold, BLOCKS - from);
      cache.hash(parent, ids, from * BLOCK, count, BLOCK);
      position = cache.stored(count, position, keys, from);
      parent = [cache.keys[2 * count - 2]!, cache.keys[2 * count - 1]!];
    }
    if (i >= 0) stored.push(Bun.nanoseconds() - started);
    started = Bun.nanoseconds();
    for (let from = 0; from < BLOCKS; from += cache.mostTold)
      cache.removed(Math.min(cache.mostTold, BLOCKS - from), keys, from);
    if (i >= 0) removed.push(Bun.nanoseconds() - started);
  }
  if (writer.stats().blocks !== blocks) throw new Error(`${writer.stats().blocks} blocks are left, not ${blocks}`);
  return { stored: (at(stored, 0.5) * 1000) / BLOCKS, removed: (at(removed, 0.5) * 1000) / BLOCKS };
}

/** Bytes for each block of each worker, with a million blocks that so many workers hold each. */
function memory(holders: number) {
  const blocks = 2 ** 20;
  const board = PrefixBoard.create(1, megabytesFor(blocks));
  const writer = board.writer();
  for (let worker = 0; worker < WORKERS; worker++) writer.claim(worker, 0);
  const keys = new Int32Array(BLOCKS * 2);
  const caches = Array.from({ length: WORKERS }, (_, worker) => writer.cache(worker));
  for (let first = 0; first < blocks; first += BLOCKS) {
    crypto.getRandomValues(keys);
    const worker = (first / BLOCKS) % WORKERS;
    for (let n = 0; n < holders; n++) tell(caches[(worker + n * 5) % WORKERS]!, keys, BLOCKS);
  }
  const { evicted, dropped, sets } = writer.stats();
  const pairs = blocks * holders;
  const index = (board.memory.buffer.byteLength - board.capacity * board.hashBytes) / pairs;
  const engine = board.hashBytes / ENGINE_LOAD;
  return { holders, pairs, evicted, dropped, sets, index, engine, bytes: index + engine };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: "string" }, "no-write": { type: "boolean" }, help: { type: "boolean" } },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const machine = { ...describeMachine(), pinned: false };
  const calibration = calibrate();
  const result = measure(Number(values.rounds ?? 400));
  const memories = [memory(1), memory(8)];
  const f = (value: number, digits = 1) => value.toFixed(digits);
  const text = [
    `# Prefix index\n\n${machineText(machine)}`,
    `A multiplication and an XOR that wait for those before took ${f(calibration.multiply)} ns, a read from 256 MB that does ${f(calibration.read, 0)} ns.`,
    `${result.blocks} blocks of ${BLOCK} tokens over ${WORKERS} workers, by their events (${result.stats.evicted} thrown out, ${result.stats.dropped} not written); a radix tree of the same prompts' texts, ${result.nodes} nodes. Prompts of ${TOKENS} tokens, each used once, by both. Medians in microseconds.`,
    `Looking up how much every worker holds, from ids or text:\n\n${table(
      ["Held", "index", "p90", "of it the chain", "tree of texts", "p90", "times as fast"],
      result.lookUps.map((row) => [
        row.kind,
        f(row.index_us),
        f(row.index_p90_us),
        f(row.chain_us),
        f(row.tree_us),
        f(row.tree_p90_us),
        f(row.ratio),
      ]),
    )}`,
    `The same, and then writing down that it was sent to a worker:\n\n${table(
      ["Held", "index", "tree of texts", "times as fast"],
      result.routed.map((row) => [row.kind, f(row.index_us), f(row.tree_us), f(row.ratio)]),
    )}`,
    `An event of a prompt's blocks takes ${f(result.events.stored, 0)} ns for each block that is stored, hashing its ids included, and ${f(result.events.removed, 0)} ns for each that is removed.`,
    `Memory, with ${2 ** 20} blocks:\n\n${table(
      ["Workers that hold a block", "index, bytes", "engines' hashes", "for each block and worker", "thrown out"],
      memories.map((row) => [String(row.holders), f(row.index), f(row.engine), f(row.bytes), String(row.evicted)]),
    )}`,
  ].join("\n\n");
  console.log(text);
  if (!values["no-write"])
    console.error(
      await writeResult(`${machine.date}-routing-index`, `${text}\n`, { machine, calibration, ...result, memories }),
    );
}

await main();
