/** How a call is answered: by a stream of frames, or at once. */
import { ClientClosedError, type GatewayError } from "../../errors.ts";
import type { GenerationSink } from "../../generation/events.ts";
import type { RunningGeneration } from "../../generation/run.ts";
import type { ServerContext } from "../../server/context.ts";
import { EventStream } from "../../server/event-stream.ts";
import { logFailure } from "../../server/log-failure.ts";
import type { RequestScope } from "../../server/request-scope.ts";

/** What can be answered: a call, or several in one. */
interface Runnable<Sink> {
  run(sink: Sink, signal: AbortSignal): RunningGeneration;
}

/** Where the frames of a stream go. */
export interface FrameWriter {
  write(frame: string): void;
  flush(): void;
  end(): void;
  /** Gives the stream up without a proper end. */
  cut(): void;
  /** The client has not taken yet what was flushed before. */
  readonly isBehind?: boolean;
}

/** A sink that knows whether the generation has failed. */
export interface AnswerSink extends GenerationSink {
  readonly error: GatewayError | undefined;
}

/** A sink that writes frames. */
export interface StreamSink extends AnswerSink {
  /** Something was written that commits the status: failures are frames from then on. */
  readonly started: boolean;
  /** Nothing is left to be cancelled: set at the generation's last event, before anything is stored. */
  readonly finished: boolean;
  /** The status line leaves before the first event, as a heartbeat is due: write what opens the stream now. */
  commit(): void;
  /** What goes on when the stream is closed (an answer is being stored): the request lasts until it is done. Must not reject. */
  pending?(): Promise<void> | undefined;
}

export interface StreamOptions {
  /** For the log. */
  readonly path: string;
  readonly headers: Record<string, string>;
  /** Frame that is sent in silence; a comment by default. */
  readonly keepAlive?: string;
  /** The silence; by default the setting `sse-heartbeat-secs`. */
  readonly keepAliveMs?: number;
}

/**
 * Answers by a stream. The sink gets a writer, and `first`, which it calls at the first event of any kind, when it has written what opens
 * the stream. Resolves then, or at the first heartbeat; rejects with the error of a call that failed before. The scope is finished when
 * the sink has ended or cut the stream, or the client has left, which ends the work for it.
 */
export async function streamAnswer<Sink extends StreamSink>(
  call: Runnable<Sink>,
  makeSink: (out: FrameWriter, first: () => void) => Sink,
  { path, headers, keepAlive, keepAliveMs }: StreamOptions,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  let running: RunningGeneration | undefined;
  let first!: () => void;
  const begun = new Promise<void>((resolve) => {
    first = resolve;
  });
  const out = new EventStream({
    heartbeatMs: keepAliveMs ?? context.config.sseHeartbeatSecs * 1000,
    ...(keepAlive !== undefined && { keepAlive }),
    // A long prefill must not look like a dead server: then the status goes out before the first token.
    onSilent() {
      sink.commit();
      first();
    },
    onPause: () => running?.pause(),
    onResume: () => running?.resume(),
    onClosed() {
      if (!sink.finished) scope.abort(new ClientClosedError());
      const pending = sink.pending?.();
      if (pending === undefined) scope.finish();
      else void pending.finally(() => scope.finish());
    },
  });
  const sink = makeSink(out, first);
  running = call.run(sink, scope.signal);
  await begun;
  if (sink.error && !sink.started) {
    out.close();
    throw sink.error;
  }
  void running.done.then(() => {
    if (sink.error === undefined) return;
    scope.meter?.failed(sink.error);
    logFailure(context.log, scope.id, path, sink.error);
  });
  return out.response(headers);
}

/** Runs a call to its end. The scope stays open. Rejects with the GatewayError that it failed with. */
export async function collectAnswer<Sink extends AnswerSink>(
  call: Runnable<Sink>,
  sink: Sink,
  { signal }: Pick<RequestScope, "signal">,
): Promise<void> {
  await call.run(sink, signal).done;
  if (sink.error) throw sink.error;
}
