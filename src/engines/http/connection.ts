/**
 * Requests to one HTTP server. Of what Bun has, `node:http` does it: `fetch` lets 256 requests run in the whole process, and the others
 * wait.
 */
import type { Agent, request as HttpSend, IncomingHttpHeaders } from "node:http";
import { EngineError } from "../engine.ts";
import { withoutAddresses } from "../engine-error.ts";
import { type Body, bodyOf } from "./body.ts";

export interface HttpTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface ConnectionOptions {
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined;
  /** How long it may take until the server accepts a connection; 5000 by default. */
  readonly connectTimeoutMs?: number | undefined;
  /** For `https://`; PEM texts. Without a CA the system's are used. */
  readonly tls?: HttpTls | undefined;
}

export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** With the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** JSON. */
  readonly body?: string | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

const CONNECT_MS = 5000;
/** Idle connections that are kept: more than that are needed again only by a burst like the last one. */
const IDLE_CONNECTIONS = 256;

interface Way {
  readonly agent: Agent;
  readonly send: typeof HttpSend;
}

const KEPT = { keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS };

// loaded when they are first needed: most gateways have no HTTP engines
async function plainWay(): Promise<Way> {
  const { Agent, request } = await import("node:http");
  return { agent: new Agent(KEPT), send: request };
}

async function secureWay(): Promise<Way> {
  const { Agent, request } = await import("node:https");
  return { agent: new Agent(KEPT), send: request };
}

export class HttpConnection {
  private readonly origin: URL;
  private readonly tls: HttpTls;
  private way: Promise<Way> | undefined;

  /** `url`: `http(s)://host[:port]`. Throws EngineError "invalid" for one of another form. */
  constructor(
    url: string,
    private readonly options: ConnectionOptions = {},
  ) {
    this.origin = originOf(url);
    this.tls = this.isSecure ? (options.tls ?? {}) : {};
  }

  private get isSecure(): boolean {
    return this.origin.protocol === "https:";
  }

  /** Resolves at the answer's head, whatever its status. Rejects with EngineErrors: "unavailable", or "cancelled" when `signal` fires. */
  async request(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    this.way ??= this.isSecure ? secureWay() : plainWay();
    const { agent, send } = await this.way;
    try {
      return await this.attempt(send, request, signal, agent);
    } catch (error) {
      // a server may close a connection that was idle in the moment in which it is used again
      if (!(error instanceof StaleConnection) || signal.aborted) throw toEngineError(error, signal);
    }
    return this.attempt(send, request, signal, false).catch((error: unknown) => {
      throw toEngineError(error, signal);
    });
  }

  close(): void {
    void this.way?.then(({ agent }) => agent.destroy());
  }

  private attempt(
    send: typeof HttpSend,
    { method, path, headers = {}, body }: HttpRequest,
    signal: AbortSignal,
    agent: Agent | false,
  ): Promise<HttpAnswer> {
    const { hostname, port } = this.origin;
    const bytes = body === undefined ? undefined : Buffer.from(body);
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    if (signal.aborted) return Promise.reject(signal.reason);
    const call = send({
      ...this.tls,
      hostname: hostname.replace(/^\[|\]$/g, ""),
      ...(port !== "" && { port }),
      method,
      path,
      agent,
      headers: { ...headers, ...this.ownHeaders(bytes) },
    });
    const onAbort = (): void => {
      call.destroy();
    };
    const limit = this.options.connectTimeoutMs ?? CONNECT_MS;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const connected = (): void => clearTimeout(timer);
    signal.addEventListener("abort", onAbort, { once: true });
    call.on("socket", (socket) => {
      if (!socket.connecting) return;
      timer = setTimeout(() => call.destroy(new Error("no connection in time")), limit);
      socket.once(this.isSecure ? "secureConnect" : "connect", connected);
    });
    call.on("response", (answer) => {
      connected();
      resolve({
        status: answer.statusCode ?? 0,
        headers: headersOf(answer.headers),
        body: bodyOf(call, answer, (error) => toEngineError(error, signal)),
      });
    });
    call.on("error", (error: NodeJS.ErrnoException) => {
      connected();
      reject(call.reusedSocket && RESET.has(error.code ?? "") ? new StaleConnection(error) : error);
    });
    call.on("close", () => {
      connected();
      signal.removeEventListener("abort", onAbort);
      reject(new Error("the connection was closed"));
    });
    call.end(bytes);
    return promise;
  }

  private ownHeaders(body: Uint8Array | undefined): Record<string, string> {
    const { apiKey } = this.options;
    return {
      // what comes is passed on, or read here: neither is helped by compression
      "accept-encoding": "identity",
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      ...(body !== undefined && { "content-type": "application/json", "content-length": String(body.length) }),
    };
  }
}

const RESET: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

class StaleConnection extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

function originOf(text: string): URL {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // told below
  }
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "")
    throw new EngineError("invalid", "the URL of an HTTP engine must be http(s)://host:port");
  return url;
}

function headersOf(given: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) headers.append(name, one);
  return headers;
}

function toEngineError(error: unknown, signal: AbortSignal): EngineError {
  if (signal.aborted) return new EngineError("cancelled", "cancelled", { cause: error });
  if (error instanceof EngineError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new EngineError("unavailable", withoutAddresses(why), { cause: error });
}
