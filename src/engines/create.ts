/** From a worker's URL to an Engine of a known dialect, without a word on the wire. */
import type { ChannelOptions } from "./channel.ts";
import { dialectByName } from "./dialects.ts";
import { type Engine, EngineError } from "./engine.ts";
import type { EngineFacts } from "./facts.ts";
import { createFramingChannel } from "./framing-channel.ts";
import { createGrpcEngine, type EngineChannels } from "./grpc-engine.ts";
import { lazyChannel } from "./lazy-channel.ts";

export type EngineTransport = "framing" | "grpc-js";

export interface EngineOptions {
  readonly transport: EngineTransport;
  /** Interval of HTTP/2 pings in milliseconds; 0 sends none. */
  readonly keepaliveMs: number;
  /** For `grpcs://`; PEM texts. Without a CA the system's are used. */
  readonly tls?: NonNullable<ChannelOptions["tls"]>;
  readonly keepaliveTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  /** For generations and embeddings; 1 by default. */
  readonly connections?: number;
  readonly maxReceiveBytes?: number;
}

/** A worker whose dialect is known, best with what it told when it registered. */
export interface KnownWorker {
  /** `grpc://host:port` or `grpcs://host:port`. */
  readonly url: string;
  readonly dialect: string;
  readonly facts?: EngineFacts | undefined;
}

/**
 * The engine of a worker. Connects with the first call.
 * Throws EngineError "unimplemented" for a dialect that the gateway does not speak, "invalid" for a URL of another form.
 */
export function createEngine(worker: KnownWorker, options: EngineOptions): Engine {
  return engineOf(worker, openChannels(worker.url, options));
}

/**
 * The same over one connection for every call, for who asks little: loading grpc-js costs start time and memory, and a connection of its
 * wakes the process twice a second. `onLost`: the connection was up and is over; unknown with grpc-js.
 */
export function createControlEngine(worker: KnownWorker, options: EngineOptions, onLost?: () => void): Engine {
  const { stream } = openChannels(worker.url, options, onLost);
  return engineOf(worker, { stream, control: stream });
}

function engineOf({ dialect: name, facts }: KnownWorker, channels: EngineChannels): Engine {
  const dialect = dialectByName(name);
  if (dialect === undefined) throw new EngineError("unimplemented", `the ${name} dialect is not supported`);
  return createGrpcEngine(dialect, channels, facts);
}

/** Channels to an engine URL, one and the same with grpc-js for every call; they connect with their first calls. */
export function openChannels(url: string, options: EngineOptions, onLost?: () => void): EngineChannels {
  const { target, secure } = parseTarget(url);
  const channelOptions: ChannelOptions = {
    // Servers send up to 256 MiB.
    maxReceiveBytes: options.maxReceiveBytes ?? 256 << 20,
    keepaliveMs: options.keepaliveMs,
    keepaliveTimeoutMs: options.keepaliveTimeoutMs ?? 10_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    onLost,
    ...(options.connections !== undefined && { connections: options.connections }),
    ...(secure ? { tls: options.tls ?? {} } : {}),
  };
  // Loaded with the first control call: it costs start time and memory in every thread.
  const control = lazyChannel(async () =>
    (await import("./grpc-js-channel.ts")).createGrpcJsChannel(target, channelOptions),
  );
  return { control, stream: options.transport === "framing" ? createFramingChannel(target, channelOptions) : control };
}

/** `host:port` of an engine URL, and whether it asks for TLS. Throws EngineError "invalid". */
export function parseTarget(url: string): { readonly target: string; readonly secure: boolean } {
  const parts = /^(grpcs?):\/\/([^/?#@\s]+:\d+)\/?$/i.exec(url);
  if (parts === null) throw new EngineError("invalid", "an engine URL must be grpc://host:port or grpcs://host:port");
  return { target: parts[2]!, secure: parts[1]!.toLowerCase() === "grpcs" };
}
