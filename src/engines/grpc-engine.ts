import type { Channel } from "./channel.ts";
import { controlCalls } from "./control.ts";
import { GenerateResponseDecoder } from "./decode.ts";
import { type Dialect, unknownFacts } from "./dialects.ts";
import { startEmbed } from "./embed.ts";
import { type Engine, EngineError } from "./engine.ts";
import type { EngineFacts } from "./facts.ts";
import { Feature } from "./features.ts";
import { startGeneration } from "./generation.ts";
import { grpcKvSource } from "./kv/grpc.ts";

export interface EngineChannels {
  /** Carries generations and embeddings. */
  readonly stream: Channel;
  /** Carries everything else; may be the same channel. */
  readonly control: Channel;
}

/** An engine of a dialect over two channels, which it owns: `close` closes both. All failures are EngineErrors. */
export function createGrpcEngine(
  dialect: Dialect,
  { stream, control }: EngineChannels,
  facts: EngineFacts = unknownFacts(dialect),
): Engine {
  const calls = controlCalls(dialect, control);
  const peer = {
    channel: stream,
    rules: dialect.generate,
    decoder: new GenerateResponseDecoder(dialect.generate.layout),
    facts,
  };
  const { abort } = calls;

  return {
    dialect: dialect.name,
    generate: (request, handler) =>
      startGeneration(peer, request, handler, () => {
        abort([request.requestId]).catch(() => {});
      }),
    embed(request, signal) {
      if (dialect.embed === undefined)
        return Promise.reject(new EngineError("invalid", "the engine of this model has no embeddings"));
      return startEmbed(stream, dialect.embed, request, signal, () => {
        abort([request.requestId]).catch(() => {});
      });
    },
    abort,
    health: calls.health,
    serving: calls.serving,
    modelInfo: calls.modelInfo,
    serverInfo: calls.serverInfo,
    tokenizerBundle: calls.tokenizerBundle,
    loads: calls.loads,
    flushCache: calls.flushCache,
    startProfile: calls.startProfile,
    stopProfile: calls.stopProfile,
    ...((dialect.features & Feature.kvEvents) !== 0 && { kvEvents: () => grpcKvSource(control, dialect.service) }),
    close() {
      stream.close();
      control.close();
    },
  };
}
