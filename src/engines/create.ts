import type { Channel, ChannelOptions } from "./channel.ts";
import { type EngineTransport, parseTarget } from "./connect.ts";
import type { Engine } from "./engine.ts";
import { EngineError } from "./engine.ts";
import { createFramingChannel } from "./framing-channel.ts";
import { lazyChannel } from "./lazy-channel.ts";
import { createVllmEngine } from "./vllm/engine.ts";

export function createEngine(
  dialect: string,
  url: string,
  o: { transport: EngineTransport; keepaliveMs: number },
): Engine {
  const { target } = parseTarget(url);
  const options: ChannelOptions = {
    maxReceiveBytes: 256 << 20,
    keepaliveMs: o.keepaliveMs,
    keepaliveTimeoutMs: 10_000,
    connectTimeoutMs: 5000,
  };
  const grpcJs = (): Channel =>
    lazyChannel(async () => (await import("./grpc-js-channel.ts")).createGrpcJsChannel(target, options));
  const control = grpcJs();
  const stream = o.transport === "framing" ? createFramingChannel(target, options) : control;
  if (dialect !== "vllm") throw new EngineError("unimplemented", `the ${dialect} dialect is not supported`);
  return createVllmEngine({ stream, control });
}
