/** A gRPC client of any dialect: @grpc/grpc-js with protobufjs over the proto texts. */
import * as grpc from "@grpc/grpc-js";
import type { SimulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { type DialectName, dialectPackage, type PlainMessage } from "../../support/proto-package.ts";
import { type Plain, settings, TABLES } from "./harness.ts";

export const SERVICES: Readonly<Record<DialectName, string>> = {
  vllm: "vllm.grpc.engine.VllmEngine",
  sglang: "sglang.grpc.scheduler.SglangScheduler",
  tokenspeed: "tokenspeed.grpc.scheduler.TokenSpeedScheduler",
  trtllm: "trtllm.TrtllmService",
  mlx: "mlx.grpc.engine.MlxEngine",
};

export interface Stream {
  readonly chunks: PlainMessage[];
  readonly completes: PlainMessage[];
  /** In the order in which they came. */
  readonly order: string[];
  readonly status: number;
  readonly details: string;
}

export interface DialectClient {
  /** Calls by the dialect's own message names, `<Method>Request` unless given; 64-bit numbers are numbers. Rejects with grpc.ServiceError. */
  call(method: string, request?: Plain, types?: { request: string; reply: string }): Promise<PlainMessage>;
  /** All messages of a server's stream; `onMessage` hears of each. */
  stream(
    method: string,
    request: Plain,
    types: { request: string; reply: string },
    onMessage?: (message: PlainMessage) => void,
  ): Promise<PlainMessage[]>;
  /** Reads a Generate call to its end; `onMessage` hears of each message. */
  generate(request: Plain, onMessage?: (count: number, cancel: () => void) => void): Promise<Stream>;
  readonly channel: grpc.Client;
  close(): void;
}

export function connectDialect(dialect: DialectName, port: number): DialectClient {
  const proto = dialectPackage(dialect);
  const channel = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": -1,
  });
  const path = (method: string) => `/${SERVICES[dialect]}/${method}`;
  const write = (type: string) => (value: Plain) => Buffer.from(proto.encode(type, value));
  const read = (type: string) => (bytes: Buffer) => proto.decode(type, bytes);
  return {
    channel,
    call: (method, request = {}, types = { request: `${method}Request`, reply: `${method}Response` }) =>
      new Promise((resolve, reject) => {
        channel.makeUnaryRequest(path(method), write(types.request), read(types.reply), request, (error, reply) => {
          if (error) reject(error);
          else resolve(reply ?? {});
        });
      }),
    stream: (method, request, types, onMessage) =>
      new Promise((resolve, reject) => {
        const all: PlainMessage[] = [];
        channel
          .makeServerStreamRequest(path(method), write(types.request), read(types.reply), request)
          .on("data", (message: PlainMessage) => {
            all.push(message);
            onMessage?.(message);
          })
          .on("error", reject)
          .on("end", () => resolve(all));
      }),
    generate: (request, onMessage) =>
      new Promise((resolve) => {
        const chunks: PlainMessage[] = [];
        const completes: PlainMessage[] = [];
        const order: string[] = [];
        const call = channel.makeServerStreamRequest(
          path("Generate"),
          write("GenerateRequest"),
          read("GenerateResponse"),
          request,
        );
        call.on("data", (message: PlainMessage) => {
          const kind = message["chunk"] ? "chunk" : "complete";
          order.push(kind);
          (kind === "chunk" ? chunks : completes).push(message[kind] as PlainMessage);
          onMessage?.(order.length, () => call.cancel());
        });
        call.on("error", () => {
          // `status` follows.
        });
        call.on("status", ({ code, details }) => resolve({ chunks, completes, order, status: code, details }));
      }),
    close: () => channel.close(),
  };
}

/** Runs a body against a fresh engine of a dialect; everything is closed afterwards. */
export async function withDialect(
  dialect: DialectName,
  changed: Partial<SimulatorOptions>,
  body: (client: DialectClient, engine: Simulator) => Promise<void>,
): Promise<void> {
  const engine = await startSimulator(settings({ dialect, speed: "instant", ...changed }), {
    tokenizerCacheDir: TABLES,
  });
  const client = connectDialect(dialect, engine.port);
  try {
    await body(client, engine);
  } finally {
    client.close();
    await engine.stop();
  }
}

/** Ids of the chunks of one index, joined. */
export function idsOf(chunks: readonly PlainMessage[], index = 0, key = "index"): number[] {
  return chunks.filter((chunk) => chunk[key] === index).flatMap((chunk) => chunk["token_ids"] as number[]);
}

/** The status of a call that fails. */
export async function statusOf(call: Promise<unknown>): Promise<{ code: number; details: string } | undefined> {
  return call.then(
    () => undefined,
    ({ code, details }: grpc.ServiceError) => ({ code, details }),
  );
}
