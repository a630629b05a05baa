/** A simulated engine for one test, and a real gRPC client of the vLLM dialect (@grpc/grpc-js with protobufjs) to talk to it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { type SimulatorOptions, simulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, type SimulatorHooks, startSimulator } from "../../../src/simulator/simulator.ts";

/** Tokenizer tables, built once for all tests. */
export const TABLES = join(tmpdir(), "collie-test-tables");

const SERVICE = "/vllm.grpc.engine.VllmEngine/";

const root = new protobuf.Root();
root.resolvePath = (_origin, target) => join(import.meta.dir, "../../../proto", target.split("/").at(-1) ?? target);
root.loadSync("vllm_engine.proto", { keepCase: true });

export type Plain = Record<string, unknown>;

/** Default settings on free ports, with some changed. */
export function settings(changed: Partial<SimulatorOptions> = {}): SimulatorOptions {
  const defaults = Object.fromEntries(
    Object.entries(simulatorOptions).map(([key, option]) => [
      key,
      "default" in option ? option.default : option.type === "boolean" ? false : undefined,
    ]),
  );
  return { ...defaults, port: 0, statsPort: 0, shutdownGracePeriodSecs: 0, ...changed } as SimulatorOptions;
}

export interface Reply {
  readonly chunks: Plain[];
  readonly completes: Plain[];
  /** Ids of choice 0, from chunks or from a Complete that came alone. */
  readonly ids: number[];
  readonly status: number;
  readonly details: string;
}

export interface Client {
  readonly channel: grpc.Client;
  unary(method: string, type: string, replyType: string, request?: Plain): Promise<Plain>;
  /** Reads a Generate call to its end; `onMessage` may cancel. Never rejects: look at `status`. */
  generate(request: Plain, onMessage?: (count: number, call: grpc.ClientReadableStream<Plain>) => void): Promise<Reply>;
  close(): void;
}

export function connect(port: number): Client {
  const channel = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": -1,
  });
  const encode = (type: string) => {
    const message = root.lookupType(type);
    return (value: Plain) => Buffer.from(message.encode(message.fromObject(value)).finish());
  };
  const decode = (type: string) => {
    const message = root.lookupType(type);
    return (bytes: Buffer) => message.toObject(message.decode(bytes), { arrays: true, longs: Number }) as Plain;
  };
  return {
    channel,
    unary: (method, type, replyType, request = {}) =>
      new Promise((resolve, reject) => {
        const path = method.startsWith("/") ? method : SERVICE + method;
        channel.makeUnaryRequest(path, encode(type), decode(replyType), request, (error, reply) => {
          if (error) reject(error);
          else resolve(reply ?? {});
        });
      }),
    generate: (request, onMessage) =>
      new Promise((resolve) => {
        const chunks: Plain[] = [];
        const completes: Plain[] = [];
        const call = channel.makeServerStreamRequest(
          `${SERVICE}Generate`,
          encode("vllm.grpc.engine.GenerateRequest"),
          decode("vllm.grpc.engine.GenerateResponse"),
          request,
        );
        call.on("data", (message: Plain) => {
          if (message["chunk"]) chunks.push(message["chunk"] as Plain);
          if (message["complete"]) completes.push(message["complete"] as Plain);
          onMessage?.(chunks.length + completes.length, call);
        });
        call.on("error", () => {
          // `status` follows.
        });
        call.on("status", ({ code, details }) => {
          const own = chunks.filter((chunk) => (chunk["index"] ?? 0) === 0);
          const ids =
            own.length > 0
              ? own.flatMap((chunk) => chunk["token_ids"] as number[])
              : (completes[0]?.["output_ids"] ?? []);
          resolve({ chunks, completes, ids: ids as number[], status: code, details });
        });
      }),
    close: () => channel.close(),
  };
}

export interface KvFeed {
  /** KvEventBatch messages; 64-bit numbers are texts. */
  readonly batches: Plain[];
  readonly status: Promise<grpc.StatusObject>;
  cancel(): void;
}

/** Subscribes to KV events and waits for the headers, or for the end. */
export async function subscribe(client: Client, start = 0): Promise<KvFeed> {
  const request = root.lookupType("smg.grpc.common.SubscribeKvEventsRequest");
  const batch = root.lookupType("smg.grpc.common.KvEventBatch");
  const call = client.channel.makeServerStreamRequest(
    `${SERVICE}SubscribeKvEvents`,
    (value: Plain) => Buffer.from(request.encode(request.fromObject(value)).finish()),
    (bytes: Buffer) => batch.toObject(batch.decode(bytes), { arrays: true, longs: String }) as Plain,
    { start_sequence_number: start },
  );
  const batches: Plain[] = [];
  call.on("data", (message: Plain) => batches.push(message));
  call.on("error", () => {
    // `status` follows.
  });
  const status = new Promise<grpc.StatusObject>((resolve) => call.on("status", resolve));
  await Promise.race([new Promise((resolve) => call.on("metadata", resolve)), status]);
  return { batches, status, cancel: () => call.cancel() };
}

/** A request for some ids; sampling members by their wire names. */
export function ask(ids: readonly number[], sampling: Plain = {}, rest: Plain = {}): Plain {
  return {
    request_id: `r-${Math.random().toString(36).slice(2)}`,
    tokenized: { input_ids: [...ids] },
    sampling_params: { temperature: 0, ...sampling },
    stream: true,
    ...rest,
  };
}

/** Runs a body against a fresh engine; everything is closed afterwards. */
export async function withEngine(
  changed: Partial<SimulatorOptions>,
  body: (client: Client, engine: Simulator) => Promise<void>,
  hooks?: SimulatorHooks,
): Promise<void> {
  const engine = await startSimulator(settings(changed), { tokenizerCacheDir: TABLES, ...hooks });
  const client = connect(engine.port);
  try {
    await body(client, engine);
  } finally {
    client.close();
    await engine.stop();
  }
}

/** The same with a script; the file is gone afterwards. */
export async function withScript(
  yaml: string,
  body: (client: Client, engine: Simulator) => Promise<void>,
  changed: Partial<SimulatorOptions> = {},
  hooks?: SimulatorHooks,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "collie-script-"));
  try {
    const script = join(folder, "script.yaml");
    await Bun.write(script, yaml);
    await withEngine({ speed: "instant", script, ...changed }, body, hooks);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/**
 * Lets what goes on in this process go on for a while, where there is nothing to wait for. In short turns, since after a pause of the
 * whole machine one long sleep would be over at once, with nothing done.
 */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Bun.sleep(10);
}

/** Waits until a condition holds; fails after four seconds. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 4000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await Bun.sleep(2);
  }
}
