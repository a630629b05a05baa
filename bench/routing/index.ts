/** The prefix index against a radix tree of texts, on the same prompts. */
import { parseArgs } from "node:util";
import { prefixIndex } from "../../src/routing/prefix-index.ts";
import { ENGINE_ROW_BYTES, PrefixBoard } from "../../src/threads/prefix-board.ts";
import { describeMachine, machineText } from "../lab/machine.ts";
import { table, writeResult } from "../lab/output.ts";
import { BLOCK, BLOCKS, KINDS, MODEL, routingData, TOKENS, WORKERS } from "./index-data.ts";
import { RadixTree } from "./radix.ts";

const USAGE = `npm run bench:routing-index -- [--rounds 400] [--no-write]

  --rounds N   prompts of each kind that are timed
  --no-write   print only; else bench/results gets a Markdown and a JSON file
`;

/** Share of the places of the table of engines' hashes that is in use: src/fleet/kv. */
const ENGINE_LOAD = 0.8;
/** Share of the places for blocks that the memory is sized for. */
const LOAD = 0.82;
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
  return { blocks: data.blocks, stats, nodes: tree.nodes, lookUps, routed };
}

/** Bytes for each block of each worker, with a million blocks that so many workers hold each. */
function memory(holders: number) {
  const blocks = 2 ** 20;
  const board = PrefixBoard.create(1, megabytesFor(blocks));
  const writer = board.writer();
  for (let worker = 0; worker < WORKERS; worker++) writer.claim(worker, 0);
  const keys = new Int32Array(BLOCKS * 2);
  for (let first = 0; first < blocks; first += BLOCKS) {
    crypto.getRandomValues(keys);
    const worker = (first / BLOCKS) % WORKERS;
    for (let n = 0; n < holders; n++)
      for (let i = 0; i < BLOCKS; i++) writer.add(keys[i * 2]!, keys[i * 2 + 1]!, (worker + n * 5) % WORKERS);
  }
  const { evicted, dropped, sets } = writer.stats();
  const pairs = blocks * holders;
  const index = board.memory.byteLength / pairs;
  const engine = ENGINE_ROW_BYTES / ENGINE_LOAD;
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
