/** Simulated engines in roles, a serving thread's view of them, and requests through both. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectEngine } from "../../../src/engines/connect.ts";
import { createEngine } from "../../../src/engines/create.ts";
import type {
  ChoiceFinish,
  Engine,
  EngineError,
  GenerateCall,
  GenerateRequest,
  TokenLogprobs,
} from "../../../src/engines/engine.ts";
import { dispatcher } from "../../../src/fleet/dispatch/dispatcher.ts";
import { DEFAULT_POLICY, type ModelLimits } from "../../../src/fleet/dispatch/policy.ts";
import type { WorkerEntry } from "../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import type { SimulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { encode, IM_END } from "../../unit/generation/demo-tokenizer.ts";
import { modelEntry } from "../../unit/server/gateway.ts";
import { settings, TABLES, until } from "../simulator/harness.ts";

export interface Kind {
  readonly dialect: "vllm" | "sglang" | "tokenspeed";
  readonly protocol: "0.4.14" | "0.4.28";
  readonly kvConnector?: "nixl" | "mooncake";
}

export const nameOf = ({ dialect, protocol, kvConnector }: Kind): string =>
  [dialect, kvConnector, protocol].filter(Boolean).join(" ");

export const ANSWER = Array.from({ length: 10 }, (_, i) => 1000 + 7 * i);
const SCRIPT = `
- contains: RECITE
  token_ids: [${ANSWER.join(", ")}]
  tokens_per_message: [1, 3, 2]
- contains: SLOWLY
  token_ids: [${Array.from({ length: 500 }, (_, i) => 2000 + i).join(", ")}]
  ms_per_token: 15
`;

export interface PairsOptions {
  readonly prefills?: number;
  readonly decodes?: number;
  readonly limits?: Partial<ModelLimits>;
  readonly prefill?: Partial<SimulatorOptions>;
  readonly decode?: Partial<SimulatorOptions>;
  /** What is said of a worker besides what it tells. */
  readonly worker?: (its: WorkerEntry) => Partial<WorkerEntry>;
}

export interface Answer {
  readonly chunks: { readonly ids: number[]; readonly cached: number; readonly prompt: TokenLogprobs | undefined }[];
  readonly finishes: ChoiceFinish[];
  readonly error: EngineError | undefined;
  /** Without the one that ends it, which some engines show. */
  readonly ids: number[];
}

export interface Running {
  readonly call: GenerateCall;
  readonly done: Promise<Answer>;
  /** Messages with tokens so far. */
  readonly came: () => number;
}

export interface Pairs {
  readonly prefills: readonly Simulator[];
  readonly decodes: readonly Simulator[];
  readonly workers: readonly WorkerEntry[];
  readonly board: FleetBoard;
  readonly view: FleetView;
  start(prompt: string, request?: Partial<GenerateRequest>): Running;
  run(prompt: string, request?: Partial<GenerateRequest>): Promise<Answer>;
  /** Waits until no engine has anything of any request, and nothing is booked. */
  quiet(): Promise<void>;
  /** States of the circuit breakers, those that prefill first. */
  states(): string[];
}

const BREAKER = { failures: 1, rate: 0, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };

export async function withPairs(
  kind: Kind,
  { prefills = 1, decodes = 1, limits, worker: special = () => ({}), ...own }: PairsOptions,
  body: (pairs: Pairs) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "collie-pairs-"));
  const script = join(folder, "script.yaml");
  await Bun.write(script, SCRIPT);
  const roles = [...Array<"prefill">(prefills).fill("prefill"), ...Array<"decode">(decodes).fill("decode")];
  const simulators: Simulator[] = [];
  const board = FleetBoard.create(1, BREAKER);
  let view: FleetView | undefined;
  try {
    for (const role of roles)
      simulators.push(
        await startSimulator(settings({ ...kind, role, script, ...own[role] }), { tokenizerCacheDir: TABLES }),
      );
    const workers = await Promise.all(
      roles.map(async (role, i) => {
        const entry = await entryOf(simulators[i]!, board.claim(), role);
        board.setState(entry.slot, WorkerState.ready);
        return { ...entry, ...special(entry) };
      }),
    );
    const fleet = new FleetView(board, 0, engineOf, {
      policy: {
        ...DEFAULT_POLICY,
        rules: { ...DEFAULT_POLICY.rules, initialBackoffMs: 1 },
        limitsOf: (model) => ({ ...DEFAULT_POLICY.limitsOf(model), ...limits }),
      },
    });
    view = fleet;
    fleet.apply({ workers, expected: workers.length, models: [modelEntry({ id: "m", aliases: [] })], tokenizers: [] });
    const engines = dispatcher(fleet, fleet.model("m"), "generate");
    const start: Pairs["start"] = (prompt, request) => startOn(engines, prompt, request);
    await body({
      prefills: simulators.slice(0, prefills),
      decodes: simulators.slice(prefills),
      workers,
      board,
      view: fleet,
      start,
      run: (prompt, request) => start(prompt, request).done,
      quiet: () => until(() => board.bookings() === 0 && simulators.every(isQuiet), "everything ends"),
      states: () => workers.map(({ slot }) => board.breaker.state(slot)),
    });
  } finally {
    view?.close();
    for (const simulator of simulators) await simulator.stop();
    await rm(folder, { recursive: true });
  }
}

const idsOf = (chunks: Answer["chunks"]): number[] => chunks.flatMap(({ ids }) => ids).filter((id) => id !== IM_END);

const isQuiet = (simulator: Simulator): boolean => {
  const { open, pairing, engine } = simulator.stats();
  return open === 0 && (pairing?.offers ?? 0) === 0 && engine.running === 0 && engine.blocksInUse === 0;
};

const engineOf = ({ url, dialect, facts }: WorkerEntry): Engine =>
  createEngine({ url, dialect, facts }, { transport: "framing", keepaliveMs: 0 });

/** As the registry makes it, of what the engine tells; a port that it does not tell is that of the settings. */
async function entryOf(
  { port, bootstrapPort }: Simulator,
  slot: number,
  role: "prefill" | "decode",
): Promise<WorkerEntry> {
  const url = `grpc://127.0.0.1:${port}`;
  const first = await connectEngine(url, { transport: "framing", keepaliveMs: 0 });
  const facts = await first.learn(5000);
  first.close();
  const { dialect, labels } = facts;
  const isTold = labels["disaggregation_bootstrap_port"] !== undefined;
  return {
    ...{ id: `${role} ${slot}`, slot, url, dialect, model: "m", facts, labels, role },
    ...(!isTold && bootstrapPort !== undefined && { bootstrapPort }),
  };
}

function startOn(engines: Pick<Engine, "generate">, prompt: string, request: Partial<GenerateRequest> = {}): Running {
  const chunks: Answer["chunks"] = [];
  const finishes: ChoiceFinish[] = [];
  const { promise: done, resolve } = Promise.withResolvers<Answer>();
  const call = engines.generate(
    {
      requestId: crypto.randomUUID(),
      tokenIds: Uint32Array.from(encode(prompt)),
      sampling: { temperature: 0, ...request.sampling },
      stream: true,
      ...request,
    },
    {
      onChunk: ({ tokenIds, count, cachedTokens: cached, promptLogprobs: prompt }) =>
        chunks.push({ ids: [...tokenIds.subarray(0, count)], cached, prompt }),
      onFinish: (finish) => finishes.push(finish),
      onIdle() {},
      onEnd: (error) => resolve({ chunks, finishes, error, ids: idsOf(chunks) }),
    },
  );
  return { call, done, came: () => chunks.length };
}
