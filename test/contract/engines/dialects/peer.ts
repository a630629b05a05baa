/** A simulated engine of one dialect and age, and the gateway's adapter connected to it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectEngine } from "../../../../src/engines/connect.ts";
import { createEngine, type EngineTransport } from "../../../../src/engines/create.ts";
import type {
  ChoiceFinish,
  Engine,
  EngineError,
  GenerateCall,
  GenerateRequest,
  SamplingParams,
  TokenLogprobs,
} from "../../../../src/engines/engine.ts";
import type { EngineFacts } from "../../../../src/engines/facts.ts";
import type { SimulatorOptions } from "../../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../../src/simulator/simulator.ts";
import type { RequestRecord } from "../../../../src/simulator/stats.ts";
import { demoModelFiles } from "../../../../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../../../../src/tokenizer/load.ts";
import type { DialectName } from "../../../support/proto-package.ts";
import { settings, TABLES } from "../../simulator/harness.ts";

export type Protocol = "0.4.14" | "0.4.28";

/** What the engines say to prompts with these words; without one of them, a sentence. */
export const ANSWER = Array.from({ length: 10 }, (_, i) => 1000 + 7 * i);
const SCRIPT = `
- contains: RECITE
  token_ids: [${ANSWER.join(", ")}]
  tokens_per_message: [1, 3, 2]
- contains: SLOWLY
  token_ids: [${Array.from({ length: 500 }, (_, i) => 2000 + i).join(", ")}]
  ms_per_token: 15
- contains: COUNT
  text: "one two three four five six"
- contains: OTHER END
  token_ids: [1000, 1007, 151643]
  finish_reason: stop
- contains: LOST END
  token_ids: [1000]
  fault: no-complete
- contains: BROKEN
  token_ids: [1000, 1007, 1014]
  fault: { kind: status, after_tokens: 2, code: INTERNAL, message: "CUDA error at 10.0.0.7:8000" }
- contains: REFUSED CONSTRAINT
  fault: { kind: status, code: FAILED_PRECONDITION, message: "no token fits", trailers: { smg-constraint-failed: engine } }
- contains: FULL
  fault: { kind: status, code: RESOURCE_EXHAUSTED, message: "queue is full", trailers: { retry-after: "2" } }
`;

export interface SeenChunk {
  readonly index: number;
  readonly ids: readonly number[];
  readonly logprobs: TokenLogprobs | undefined;
  readonly promptLogprobs: TokenLogprobs | undefined;
}
export interface Seen {
  readonly chunks: readonly SeenChunk[];
  readonly finishes: readonly ChoiceFinish[];
  readonly error: EngineError | undefined;
  /** All ids of a choice. */
  ids(index?: number): number[];
}

export interface Peer {
  readonly dialect: DialectName;
  readonly protocol: Protocol;
  readonly facts: EngineFacts;
  readonly engine: Engine;
  readonly simulator: Simulator;
  /** Runs a generation to its end. `during` gets the call once so many chunks have come. */
  run(prompt: string | readonly number[], sampling?: SamplingParams, more?: RunOptions): Promise<Seen>;
  encode(text: string): Uint32Array;
  /** The engine's view of the last request. */
  last(): RequestRecord;
}
export interface RunOptions extends Partial<GenerateRequest> {
  readonly afterChunks?: number;
  during?(call: GenerateCall, requestId: string): void;
}

/** Starts an engine and registers it; `use` is given what is known of it. Everything is closed afterwards. */
export async function withPeer(
  dialect: DialectName,
  protocol: Protocol,
  transport: EngineTransport,
  use: (peer: Peer) => Promise<void>,
  changed: Partial<SimulatorOptions> = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "collie-dialects-"));
  const script = join(folder, "script.yaml");
  await Bun.write(script, SCRIPT);
  const simulator = await startSimulator(settings({ dialect, protocol, script, speed: "instant", ...changed }), {
    tokenizerCacheDir: TABLES,
  });
  const options = { transport, keepaliveMs: 0 };
  const url = `grpc://127.0.0.1:${simulator.port}`;
  const first = await connectEngine(url, options);
  try {
    const facts = await first.learn(5000);
    const engine = createEngine({ url, dialect: first.dialect, facts }, options);
    const tokenizer = openTokenizer(await loadTokenizer(await demoModelFiles(), { cacheDir: TABLES }));
    const encode = (text: string): Uint32Array => Uint32Array.from(tokenizer.encode(text));
    try {
      await use({
        dialect,
        protocol,
        facts,
        engine,
        simulator,
        run: (prompt, sampling = {}, more = {}) =>
          run(engine, typeof prompt === "string" ? encode(prompt) : Uint32Array.from(prompt), sampling, more),
        encode,
        last: () => simulator.requests().at(-1)!,
      });
    } finally {
      engine.close();
    }
  } finally {
    first.close();
    await simulator.stop();
    await rm(folder, { recursive: true });
  }
}

async function run(engine: Engine, tokenIds: Uint32Array, sampling: SamplingParams, more: RunOptions): Promise<Seen> {
  const { afterChunks = 1, during, ...request } = more;
  const requestId = request.requestId ?? crypto.randomUUID();
  const chunks: SeenChunk[] = [];
  const finishes: ChoiceFinish[] = [];
  const error = await new Promise<EngineError | undefined>((resolve) => {
    const call = engine.generate(
      { tokenIds, sampling, stream: true, ...request, requestId },
      {
        onChunk(chunk) {
          chunks.push({
            index: chunk.index,
            ids: [...chunk.tokenIds.subarray(0, chunk.count)],
            logprobs: chunk.outputLogprobs,
            promptLogprobs: chunk.promptLogprobs,
          });
          if (chunks.length === afterChunks) during?.(call, requestId);
        },
        onFinish: (finish) => finishes.push(finish),
        onIdle() {},
        onEnd: resolve,
      },
    );
  });
  return {
    chunks,
    finishes,
    error,
    ids: (index = 0) => chunks.filter((chunk) => chunk.index === index).flatMap(({ ids }) => ids),
  };
}
