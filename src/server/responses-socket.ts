/** The WebSocket transport of `/v1/responses`: the way from an HTTP request to a connection. */
import type { Server, ServerWebSocket, WebSocketHandler } from "bun";
import type { ResponsesSession } from "../apis/responses-socket/session.ts";
import { OriginNotAllowedError, ShuttingDownError } from "../errors.ts";
import { keyCheck } from "./auth.ts";
import type { ServerContext } from "./context.ts";
import { corsHeaders } from "./cors.ts";
import { failureResponse, pathOf } from "./failure.ts";
import { requestId } from "./request-id.ts";

export interface SocketData {
  readonly id: string;
  readonly headers: Headers;
  session: ResponsesSession | undefined;
}

export interface ResponsesSocket {
  /** Whether a request asks for such a connection. */
  wants(request: Request): boolean;
  /** Makes it one; the response of a request that cannot be. */
  upgrade(request: Request, server: Server<SocketData>): Promise<Response | undefined>;
  readonly handler: WebSocketHandler<SocketData>;
  /** Takes no new requests; each connection is closed once it is idle. */
  drain(): void;
}

const TENANT = "default";
/** Bytes that wait for the client after which its generations are paused, and after which it is cut off. */
const PAUSE_AT = 1 << 18;
const CUT_AT = 1 << 25;
/** A connection without a sign of life is cut after this; Bun pings in time. */
const IDLE_SECS = 240;
/** RFC 6455: the server goes away. */
const GOING_AWAY = 1001;
const PATH = "/v1/responses";

export function responsesSocket(context: ServerContext): ResponsesSocket {
  const { config } = context;
  const checkKey = keyCheck(config.apiKey);
  const open = new Set<ServerWebSocket<SocketData>>();
  /** Loaded with the first connection. */
  let Session: typeof ResponsesSession | undefined;

  const closeIdle = (socket: ServerWebSocket<SocketData>): void => {
    if (context.draining() && socket.data.session?.idle !== false)
      socket.close(GOING_AWAY, "The server is shutting down");
  };

  return {
    wants: (request) => request.method === "GET" && request.headers.has("upgrade") && isPath(request.url),
    async upgrade(request, server) {
      const id = requestId(request, config);
      try {
        checkOrigin(request.headers.get("origin"), config.corsAllowedOrigins);
        checkKey(request.headers, request.url);
        if (context.draining()) throw new ShuttingDownError();
      } catch (error) {
        return failureResponse(error, "UNKNOWN", request, {}, context, new Map());
      }
      const headers = { "x-request-id": id };
      Session ??= (await import("../apis/responses-socket/session.ts")).ResponsesSession;
      const data = { id, headers: new Headers(request.headers), session: undefined };
      if (server.upgrade(request, { data, headers })) return undefined;
      return Response.json(
        {
          error: {
            message: "The upgrade to a WebSocket is not valid",
            type: "invalid_request_error",
            param: null,
            code: "bad_upgrade",
          },
        },
        { status: 400, headers },
      );
    },
    handler: {
      maxPayloadLength: Math.min(config.maxPayloadSize, 2 ** 31 - 1),
      backpressureLimit: CUT_AT,
      closeOnBackpressureLimit: true,
      idleTimeout: IDLE_SECS,
      sendPings: true,
      perMessageDeflate: false,
      open(socket) {
        open.add(socket);
        const { id, headers } = socket.data;
        const send = (messages: readonly string[]): void => {
          socket.cork(() => {
            for (const message of messages) socket.send(message);
          });
          if (socket.getBufferedAmount() > PAUSE_AT) socket.data.session?.pause();
        };
        if (Session === undefined) throw new Error("a connection before its upgrade");
        socket.data.session = new Session({ id, tenant: TENANT, headers }, { send }, context, () => closeIdle(socket));
      },
      message(socket, message) {
        socket.data.session?.message(typeof message === "string" ? message : message.toString("utf8"));
      },
      drain(socket) {
        if (socket.getBufferedAmount() <= PAUSE_AT) socket.data.session?.resume();
      },
      close(socket) {
        open.delete(socket);
        socket.data.session?.close();
      },
    },
    drain() {
      for (const socket of open) closeIdle(socket);
    },
  };
}

function checkOrigin(origin: string | null, allowed: readonly string[]): void {
  if (origin !== null && corsHeaders(origin, allowed)["access-control-allow-origin"] === undefined)
    throw new OriginNotAllowedError();
}

function isPath(url: string): boolean {
  const path = pathOf(url);
  return path === PATH || path === `${PATH}/`;
}
