/** From a worker's URL to an Engine: transport, TLS and dialect. */
import type { Channel, ChannelOptions } from "./channel.ts";
import { type Engine, EngineError } from "./engine.ts";
import { toEngineError } from "./engine-error.ts";
import { createFramingChannel } from "./framing-channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { createVllmEngine, VLLM_SERVICE } from "./vllm/engine.ts";

export type EngineTransport = "framing" | "grpc-js";

export interface ConnectOptions {
  readonly transport: EngineTransport;
  /** Interval of HTTP/2 pings in milliseconds; 0 sends none. */
  readonly keepaliveMs: number;
  /** Dialect, when it is known: then nothing is asked, and nothing is sent before the first call. */
  readonly dialect?: string;
  /** For `grpcs://`; PEM texts. Without a CA the system's are used. */
  readonly tls?: NonNullable<ChannelOptions["tls"]>;
  readonly keepaliveTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  readonly maxReceiveBytes?: number;
  /** How long each question for the dialect may take. */
  readonly detectDeadlineMs?: number;
}

interface Dialect {
  readonly name: string;
  readonly service: string;
  /** RPC that every servicer of the dialect answers without work: HealthCheck of some runs a generation. */
  readonly probe: string;
  /** Absent for dialects that the gateway recognises but does not speak. */
  readonly create?: (channels: { readonly stream: Channel; readonly control: Channel }) => Engine;
}

/** In the order of asking. */
const DIALECTS: readonly Dialect[] = [
  { name: "vllm", service: VLLM_SERVICE, probe: "HealthCheck", create: createVllmEngine },
  { name: "sglang", service: "sglang.grpc.scheduler.SglangScheduler", probe: "GetModelInfo" },
  { name: "tokenspeed", service: "tokenspeed.grpc.scheduler.TokenSpeedScheduler", probe: "GetModelInfo" },
  { name: "trtllm", service: "trtllm.TrtllmService", probe: "GetModelInfo" },
  { name: "mlx", service: "mlx.grpc.engine.MlxEngine", probe: "GetModelInfo" },
];

/** Names of the dialects that the gateway speaks. */
export const SUPPORTED_DIALECTS: readonly string[] = DIALECTS.filter((d) => d.create !== undefined).map((d) => d.name);

/**
 * An engine at `grpc://host:port` or `grpcs://host:port`. Without `dialect` the engine is asked what it speaks.
 * Rejects with EngineError: "unavailable" or "timeout" when it can't be reached, "unimplemented" when it speaks something else.
 */
export async function connectEngine(url: string, options: ConnectOptions): Promise<Engine> {
  const { target, secure } = parseTarget(url);
  const channelOptions: ChannelOptions = {
    maxReceiveBytes: options.maxReceiveBytes ?? 256 << 20,
    keepaliveMs: options.keepaliveMs,
    keepaliveTimeoutMs: options.keepaliveTimeoutMs ?? 10_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    ...(secure ? { tls: options.tls ?? {} } : {}),
  };
  const channel = await openChannel(target, options.transport, channelOptions);
  try {
    const dialect =
      options.dialect === undefined
        ? await detectDialect(channel, options.detectDeadlineMs ?? 10_000)
        : DIALECTS.find((d) => d.name === options.dialect);
    if (dialect?.create === undefined)
      throw new EngineError("unimplemented", `the ${dialect?.name ?? options.dialect} dialect is not supported`);
    return dialect.create({ stream: channel, control: channel });
  } catch (error) {
    channel.close();
    throw error;
  }
}

/** `host:port` of an engine URL, and whether it asks for TLS. Throws EngineError "invalid". */
export function parseTarget(url: string): { readonly target: string; readonly secure: boolean } {
  const parts = /^(grpcs?):\/\/([^/?#@]+:\d+)\/?$/i.exec(url);
  if (parts === null) throw new EngineError("invalid", "an engine URL must be grpc://host:port or grpcs://host:port");
  return { target: parts[2]!, secure: parts[1]!.toLowerCase() === "grpcs" };
}

async function openChannel(target: string, transport: EngineTransport, options: ChannelOptions): Promise<Channel> {
  if (transport === "framing") return createFramingChannel(target, options);
  // Loaded only when it is asked for: it costs start time and memory in every thread.
  const { createGrpcJsChannel } = await import("./grpc-js-channel.ts");
  return createGrpcJsChannel(target, options);
}

async function detectDialect(channel: Channel, deadlineMs: number): Promise<Dialect> {
  for (const dialect of DIALECTS) {
    try {
      // Every request of these RPCs is an empty message.
      await channel.unary(`/${dialect.service}/${dialect.probe}`, new Uint8Array(0), { deadlineMs });
      return dialect;
    } catch (error) {
      if (!(error instanceof GrpcError) || error.code !== GrpcStatus.UNIMPLEMENTED) throw toEngineError(error);
    }
  }
  throw new EngineError("unimplemented", "the server speaks gRPC, but none of the engine dialects");
}
