/** From a worker's URL to an Engine, asking the worker for its dialect. */
import type { Channel } from "./channel.ts";
import { type EngineOptions, openChannels } from "./create.ts";
import { DIALECTS, type Dialect, dialectByName } from "./dialects.ts";
import { type Engine, EngineError } from "./engine.ts";
import { toEngineError } from "./engine-error.ts";
import { createGrpcEngine } from "./grpc-engine.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

export interface ConnectOptions extends EngineOptions {
  /** Dialect, when it is known: then nothing is asked, and nothing is sent before the first call. */
  readonly dialect?: string;
  /** How long each question for the dialect may take. */
  readonly detectDeadlineMs?: number;
}

/**
 * An engine at `grpc://host:port` or `grpcs://host:port`, for its registration: whatever is asked goes over the channel that will
 * carry its generations, so that a worker counts only when that way works. (Loading grpc-js for it would also be a fifth of the
 * gateway's start.)
 * Rejects with EngineError: "unavailable" or "timeout" when it can't be reached, "unimplemented" when it speaks something else,
 * "invalid" for a URL of another form.
 */
export async function connectEngine(url: string, options: ConnectOptions): Promise<Engine> {
  const { stream } = openChannels(url, options);
  try {
    const dialect =
      options.dialect === undefined
        ? await detectDialect(stream, options.detectDeadlineMs ?? 10_000)
        : dialectByName(options.dialect);
    if (dialect === undefined)
      throw new EngineError("unimplemented", `the ${options.dialect} dialect is not supported`);
    return createGrpcEngine(dialect, { stream, control: stream });
  } catch (error) {
    stream.close();
    throw error;
  }
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
