/** From a worker's URL to an Engine, asking the worker for its dialect. */
import type { Channel } from "./channel.ts";
import { controlCalls } from "./control.ts";
import { type EngineOptions, openChannels } from "./create.ts";
import { DIALECTS, type Dialect, dialectByName } from "./dialects.ts";
import { type Engine, EngineError } from "./engine.ts";
import { toEngineError } from "./engine-error.ts";
import type { EngineFacts } from "./facts.ts";
import { createGrpcEngine } from "./grpc-engine.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { learnFacts } from "./learn.ts";
import { isNotOffered, listServices } from "./reflection.ts";

export interface ConnectOptions extends EngineOptions {
  /** Dialect, when it is known: then nothing is asked, and nothing is sent before the first call. */
  readonly dialect?: string;
  /** How long each question for the dialect may take. */
  readonly detectDeadlineMs?: number;
}

/** An engine that is about to register. */
export interface ConnectedEngine extends Engine {
  /** All that it tells of itself. What it answers after that is the same: an engine that restarts is another one. */
  learn(deadlineMs: number): Promise<EngineFacts>;
}

/**
 * An engine at `grpc://host:port` or `grpcs://host:port`, for its registration: whatever is asked goes over the channel that will
 * carry its generations, so that a worker counts only when that way works. (Loading grpc-js for it would also be a fifth of the
 * gateway's start.)
 * Rejects with EngineError: "unavailable" or "timeout" when it can't be reached, "unimplemented" when it speaks something else,
 * "invalid" for a URL of another form.
 */
export async function connectEngine(url: string, options: ConnectOptions): Promise<ConnectedEngine> {
  const { stream } = openChannels(url, options);
  try {
    const { dialect, services } =
      options.dialect === undefined
        ? await detectDialect(stream, options.detectDeadlineMs ?? 10_000)
        : { dialect: dialectByName(options.dialect), services: undefined };
    if (dialect === undefined)
      throw new EngineError("unimplemented", `the ${options.dialect} dialect is not supported`);
    const calls = controlCalls(dialect, stream);
    return {
      ...createGrpcEngine(dialect, { stream, control: stream }),
      async learn(deadlineMs) {
        try {
          return await learnFacts(
            { channel: stream, dialect, calls, services: services ?? (await servicesOf(stream, deadlineMs)) },
            deadlineMs,
          );
        } catch (error) {
          throw toEngineError(error);
        }
      },
    };
  } catch (error) {
    stream.close();
    throw error;
  }
}

/** Names of the services; none where the server has no reflection. */
async function servicesOf(channel: Channel, deadlineMs: number): Promise<readonly string[]> {
  try {
    return await listServices(channel, deadlineMs);
  } catch (error) {
    if (isNotOffered(error)) return [];
    throw toEngineError(error);
  }
}

/** One question where the server has reflection, else one for each dialect. */
async function detectDialect(
  channel: Channel,
  deadlineMs: number,
): Promise<{ readonly dialect: Dialect; readonly services: readonly string[] }> {
  const services = await servicesOf(channel, deadlineMs);
  const listed = DIALECTS.find(({ service }) => services.includes(service));
  if (listed !== undefined) return { dialect: listed, services };
  for (const dialect of DIALECTS) {
    try {
      // Every request of these RPCs is an empty message.
      await channel.unary(`/${dialect.service}/${dialect.probe}`, new Uint8Array(0), { deadlineMs });
      return { dialect, services };
    } catch (error) {
      if (!(error instanceof GrpcError) || error.code !== GrpcStatus.UNIMPLEMENTED) throw toEngineError(error);
    }
  }
  throw new EngineError("unimplemented", "the server speaks gRPC, but none of the engine dialects");
}
