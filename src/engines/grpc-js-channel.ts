/**
 * The engine channel on @grpc/grpc-js: a second implementation to compare with and to fall back to. Unlike our framing it does not
 * notice a message that is cut off or compressed when the status after it is OK.
 */
import {
  type ClientReadableStream,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type StatusObject,
} from "@grpc/grpc-js";
import type { CallOptions, Channel, ChannelOptions, StreamCall, StreamHandler } from "./channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { GrpcJsConnector } from "./grpc-js-connector.ts";
import { isMetadata, metadataToHeaders } from "./grpc-metadata.ts";

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const asBytes = (bytes: Buffer): Uint8Array => bytes;

/** Texts with which grpc-js reports its own failures; some hold addresses, so they are replaced by ours. */
const LOCAL_FAILURES: readonly { readonly text: RegExp; readonly code: number; readonly details: string }[] = [
  // A GOAWAY with ENHANCE_YOUR_CALM (too many pings) is about the connection, not about the engine's queue.
  {
    text: /^Bandwidth exhausted or memory limit exceeded/,
    code: GrpcStatus.UNAVAILABLE,
    details: "connection closed by the engine (too many pings)",
  },
  {
    text: /^Received message larger than max|^Message from server too large/i,
    code: GrpcStatus.INTERNAL,
    details: "message over the limit",
  },
  {
    text: /^Received compressed message|compressed/,
    code: GrpcStatus.INTERNAL,
    details: "compressed message, although no compression was offered",
  },
  {
    text: /^(No connection established|Name resolution failed|Connection dropped|Connection closed|Connection error|read E|write E|connect E|socket hang up|Stream refused)/i,
    code: GrpcStatus.UNAVAILABLE,
    details: "connection lost",
  },
];

function toGrpcError(status: StatusObject): GrpcError {
  const text = status.details ?? "";
  for (const failure of LOCAL_FAILURES) {
    const local = status.code !== GrpcStatus.UNIMPLEMENTED || failure.code === GrpcStatus.INTERNAL;
    if (local && failure.text.test(text)) return new GrpcError(failure.code, failure.details);
  }
  if (status.code === GrpcStatus.DEADLINE_EXCEEDED) return new GrpcError(status.code, "deadline exceeded");
  const metadata: Record<string, string | Uint8Array> = {};
  for (const [key, value] of Object.entries(status.metadata?.getMap() ?? {}))
    if (isMetadata(key)) metadata[key] = typeof value === "string" ? value : Uint8Array.from(value);
  return new GrpcError(status.code, text, metadata);
}

function toMetadata(values: Readonly<Record<string, string | Uint8Array>>): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(values))
    metadata.set(key, typeof value === "string" ? value : asBuffer(value));
  return metadata;
}

interface Way {
  readonly connector: GrpcJsConnector;
  calls: number;
}

/** A channel to `target` (`host:port`, IPv6 in brackets) on grpc-js. Connects with the first call. */
export function createGrpcJsChannel(target: string, options: ChannelOptions): Channel {
  const { connections: wanted = 1 } = options;
  const ways: Way[] = [];
  let closed = false;
  const running = new Set<GrpcJsCall>();

  /** The connection with the fewest calls, a new one as long as there are to be more. */
  function leastUsed(): Way {
    let best: Way | undefined;
    for (const way of ways) if (best === undefined || way.calls < best.calls) best = way;
    if (best !== undefined && (best.calls === 0 || ways.length >= wanted)) return best;
    const way = { connector: new GrpcJsConnector(target, options), calls: 0 };
    if (closed) way.connector.close();
    ways.push(way);
    return way;
  }

  function serverStream(
    path: string,
    request: Uint8Array,
    handler: StreamHandler,
    callOptions: CallOptions = {},
  ): StreamCall {
    const way = leastUsed();
    const call = new GrpcJsCall(handler, callOptions, () => {
      running.delete(call);
      way.calls--;
    });
    running.add(call);
    way.calls++;
    let metadata = new Metadata();
    if (callOptions.metadata !== undefined) {
      try {
        metadataToHeaders(callOptions.metadata);
        metadata = toMetadata(callOptions.metadata);
      } catch (error) {
        call.endLater(error as GrpcError);
        return call;
      }
    }
    if (callOptions.signal?.aborted) {
      call.endLater(new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
      return call;
    }
    way.connector.withClient((client, error) => {
      if (client === undefined) call.endLater(error ?? new GrpcError(GrpcStatus.UNAVAILABLE, "cannot connect"));
      else call.start((limits) => client.makeServerStreamRequest(path, asBuffer, asBytes, request, metadata, limits));
    });
    return call;
  }

  function unary(path: string, request: Uint8Array, callOptions?: CallOptions): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      let reply: Uint8Array | undefined;
      let count = 0;
      // A unary call is a server stream of one message on the wire.
      serverStream(
        path,
        request,
        {
          onMessage(message) {
            count++;
            // grpc-js gives each message a buffer of its own.
            reply = message;
          },
          onEnd(error) {
            if (error !== undefined) reject(error);
            else if (reply === undefined || count !== 1)
              reject(new GrpcError(GrpcStatus.INTERNAL, `${count} messages in the reply of a unary call`));
            else resolve(reply);
          },
        },
        callOptions,
      );
    });
  }

  function close(): void {
    closed = true;
    for (const { connector } of ways) connector.close();
    for (const call of [...running]) call.fail(new GrpcError(GrpcStatus.UNAVAILABLE, "the channel is closed"));
  }

  return { unary, serverStream, close };
}

class GrpcJsCall implements StreamCall {
  private ended = false;
  private paused = false;
  private stream: ClientReadableStream<Uint8Array> | undefined;
  private readonly deadline: number | undefined;
  private readonly timer: ReturnType<typeof setTimeout> | undefined;
  private readonly onAbort = (): void => this.cancel();
  private idleScheduled = false;
  private readonly idle = (): void => {
    this.idleScheduled = false;
    if (!this.ended) this.handler.onIdle?.();
  };

  constructor(
    private readonly handler: StreamHandler,
    private readonly options: CallOptions,
    private readonly onDone: () => void,
  ) {
    options.signal?.addEventListener("abort", this.onAbort);
    if (options.deadlineMs !== undefined) {
      this.deadline = Date.now() + options.deadlineMs;
      // Also covers the time before the connection is up.
      this.timer = setTimeout(
        () => this.fail(new GrpcError(GrpcStatus.DEADLINE_EXCEEDED, "deadline exceeded")),
        Math.min(options.deadlineMs, 0x7fffffff),
      );
    }
  }

  start(open: (limits: GrpcCallOptions) => ClientReadableStream<Uint8Array>): void {
    if (this.ended) return;
    const stream = open(this.deadline === undefined ? {} : { deadline: this.deadline });
    this.stream = stream;
    let status: StatusObject | undefined;
    let drained = false;
    stream.on("data", (message: Uint8Array) => this.onData(message));
    stream.on("error", () => {});
    stream.on("end", () => {
      drained = true;
      if (status !== undefined) this.end(undefined);
    });
    stream.on("status", (ended: StatusObject) => {
      if (ended.code !== GrpcStatus.OK) this.end(toGrpcError(ended));
      // The status may come while messages still wait in a paused stream.
      else if (drained) this.end(undefined);
      else status = ended;
    });
    if (this.paused) stream.pause();
  }

  private onData(message: Uint8Array): void {
    if (this.ended) return;
    try {
      this.handler.onMessage(message, 0, message.length);
    } catch {
      this.fail(new GrpcError(GrpcStatus.INTERNAL, "the receiver of the messages failed"));
      return;
    }
    // grpc-js does not tell where a read of the socket ends; the messages of one read come within one turn of the loop.
    if (!this.idleScheduled && this.handler.onIdle !== undefined) {
      this.idleScheduled = true;
      setImmediate(this.idle);
    }
  }

  cancel(): void {
    this.fail(new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
  }

  pause(): void {
    this.paused = true;
    this.stream?.pause();
  }

  resume(): void {
    this.paused = false;
    this.stream?.resume();
  }

  fail(error: GrpcError): void {
    if (this.ended) return;
    this.end(error);
    this.stream?.cancel();
    this.stream?.resume();
  }

  endLater(error: GrpcError): void {
    queueMicrotask(() => this.end(error));
  }

  end(error: GrpcError | undefined): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    this.options.signal?.removeEventListener("abort", this.onAbort);
    this.onDone();
    try {
      this.handler.onEnd(error);
    } catch (problem) {
      // Other calls may be ending in the same loop: they must not miss their end.
      setImmediate(() => {
        throw problem;
      });
    }
  }
}
