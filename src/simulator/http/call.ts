import { STATUS_CODES } from "node:http";
import { GrpcStatus } from "../../engines/grpc-error.ts";
import type { EngineCall } from "../call.ts";
import type { HttpConnection } from "./connection.ts";
import type { HttpRequest } from "./request-reader.ts";

/** HTTP statuses for those of gRPC, as vLLM's own servers pair them. */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [GrpcStatus.INVALID_ARGUMENT]: 400,
  [GrpcStatus.FAILED_PRECONDITION]: 400,
  [GrpcStatus.OUT_OF_RANGE]: 400,
  [GrpcStatus.UNAUTHENTICATED]: 401,
  [GrpcStatus.PERMISSION_DENIED]: 403,
  [GrpcStatus.NOT_FOUND]: 404,
  [GrpcStatus.RESOURCE_EXHAUSTED]: 429,
  [GrpcStatus.UNIMPLEMENTED]: 501,
  [GrpcStatus.UNAVAILABLE]: 503,
  [GrpcStatus.DEADLINE_EXCEEDED]: 504,
};

type Headers = Readonly<Record<string, string>>;

/** How a server spells its failures. */
export interface ErrorForm {
  body(status: number, message: string): unknown;
  /** What closes an event stream behind an error event. */
  readonly lastEvent: string | undefined;
}

/** One request over HTTP and its answer: a JSON body, or a stream of events. */
export class HttpCall {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Set by the server above, before anything can fail. */
  errorForm: ErrorForm = { body: (_status, message) => ({ error: message }), lastEvent: undefined };
  /** False after the end or a lost connection. */
  open = true;
  private readonly parts = new Set<HttpPart>();
  private state: "waiting" | "streaming" | "done" = "waiting";
  private readonly waiting = new Set<HttpPart>();
  private isGarbled = false;
  private padding = 0;

  constructor(
    readonly connection: HttpConnection,
    readonly request: HttpRequest,
  ) {
    const url = new URL(request.target, "http://engine");
    this.path = url.pathname;
    this.query = url.searchParams;
  }

  /** A part of the work, with an end of its own. The call fails with the first part that does. */
  part(): HttpPart {
    const part = new HttpPart(this);
    this.parts.add(part);
    return part;
  }

  json(status: number, value: unknown, headers: Headers = {}): void {
    const padded = this.padding > 0 ? { ...(value as object), padding: "x".repeat(this.padding) } : value;
    const text = JSON.stringify(padded);
    this.body(status, "application/json", this.isGarbled ? text.slice(0, text.length / 2) : text, headers);
  }

  body(status: number, type: string, text: string, headers: Headers = {}): void {
    if (!this.open) return;
    const bytes = Buffer.from(text, "utf8");
    this.head(status, { "content-type": type, "content-length": String(bytes.length), ...headers });
    if (this.request.method !== "HEAD") this.connection.write(bytes);
    this.finish();
  }

  /** Sends one event of a stream; the first one sends the head. */
  event(data: string): void {
    this.raw(`data: ${data}\n\n`);
  }

  /** Ends a stream, complete or not; before anything was sent, with an empty body. */
  endStream(): void {
    if (!this.open) return;
    if (this.state === "waiting") {
      this.body(200, "application/json", "");
      return;
    }
    this.connection.write("0\r\n\r\n");
    this.finish();
  }

  /** Fails with a status of HTTP or of gRPC: as a body, or as an event once the stream has begun. */
  fail(status: number, message: string, headers: Headers = {}): void {
    if (!this.open) return;
    const code = status >= 100 ? status : (HTTP_STATUS[status] ?? 500);
    const body = this.errorForm.body(code, message);
    if (this.state === "waiting") this.json(code, body, headers);
    else {
      this.event(JSON.stringify(body));
      if (this.errorForm.lastEvent !== undefined) this.event(this.errorForm.lastEvent);
      this.endStream();
    }
    this.endParts();
  }

  garble(streams: boolean): void {
    if (streams) this.event('{"id": "chat');
    else this.isGarbled = true;
  }

  oversize(bytes: number, streams: boolean): void {
    if (streams) this.raw(`: ${"x".repeat(bytes)}\n\n`);
    else this.padding = bytes;
  }

  wait(part: HttpPart): void {
    this.waiting.add(part);
  }

  /** The client takes more again. Called by the connection. */
  drained(): void {
    for (const part of [...this.waiting]) {
      if (this.connection.congested) return;
      this.waiting.delete(part);
      part.onDrain?.();
    }
  }

  /** The connection is gone. Called by the connection. */
  cancelled(): void {
    this.open = false;
    this.endParts();
  }

  /** A part has ended well; the answer itself was sent by whoever collects the parts. */
  partEnded(part: HttpPart): void {
    this.parts.delete(part);
    if (this.parts.size === 0) this.endStream();
  }

  private endParts(): void {
    for (const part of [...this.parts]) {
      this.parts.delete(part);
      part.cancelled();
    }
  }

  private raw(text: string): void {
    if (!this.open) return;
    if (this.state === "waiting") {
      this.state = "streaming";
      this.head(200, { "content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked" });
    }
    this.connection.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  }

  private head(status: number, headers: Headers): void {
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}\r\ndate: ${new Date().toUTCString()}\r\nserver: uvicorn\r\n`;
    for (const [name, value] of Object.entries(headers)) text += `${name}: ${value}\r\n`;
    this.connection.write(`${text}\r\n`);
  }

  private finish(): void {
    this.state = "done";
    this.open = false;
    this.connection.answered({ closes: this.request.headers.get("connection")?.toLowerCase() === "close" });
  }
}

/** One of the requests to the engine that an HTTP call consists of. */
export class HttpPart implements EngineCall {
  onCancel?(): void;
  onDrain?(): void;
  open = true;
  /** The answer is a stream of events. */
  streams = false;

  constructor(readonly call: HttpCall) {}

  get blocked(): boolean {
    return this.call.connection.congested;
  }

  get headers(): ReadonlyMap<string, string> {
    return this.call.request.headers;
  }

  waitForDrain(): void {
    this.call.wait(this);
  }

  end(status = 0, message = "", metadata: Headers = {}): void {
    if (!this.open) return;
    this.open = false;
    if (status === 0) this.call.partEnded(this);
    else this.call.fail(status, message, metadata);
  }

  reset(): void {
    this.disconnect();
  }

  goAway(code: number): void {
    this.call.connection.leave();
    if (code !== 0) this.disconnect();
  }

  disconnect(): void {
    this.call.connection.destroy();
  }

  flush(): void {
    this.call.connection.flush();
  }

  garble(): void {
    this.call.garble(this.streams);
  }

  oversize(bytes: number): void {
    this.call.oversize(bytes, this.streams);
  }

  /** The call has ended without this part. */
  cancelled(): void {
    if (!this.open) return;
    this.open = false;
    this.onCancel?.();
  }
}
