/** Stands between an agent and the gateway, to tell which requests came and how they were answered. */
import type { ServerWebSocket } from "bun";

export interface Relay {
  readonly url: string;
  /** e.g. `POST /v1/responses 200`, in the order of the answers; 101 where a WebSocket begins. */
  readonly answered: string[];
  stop(): Promise<void>;
}

interface Upstream {
  readonly gateway: WebSocket;
  client?: ServerWebSocket<Upstream>;
}

/** Headers that belong to one connection, or that the next one makes anew. */
const OWN_HEADERS = /^(connection|upgrade|host|sec-websocket-.*)$/;

/** A WebSocket to the gateway that passes on what it says; rejects when the gateway refuses. */
async function openUpstream(url: string, headers: Headers): Promise<Upstream> {
  const kept = [...headers].filter(([name]) => !OWN_HEADERS.test(name));
  // the DOM's type knows no headers
  const options = { headers: Object.fromEntries(kept) } as unknown as string;
  const gateway = new WebSocket(url.replace("http", "ws"), options);
  const upstream: Upstream = { gateway };
  gateway.onmessage = ({ data }) => upstream.client?.send(data as string);
  gateway.onclose = ({ code, reason }) => upstream.client?.close(code === 1006 ? 1011 : code, reason);
  await new Promise((resolve, reject) => {
    gateway.onopen = resolve;
    gateway.onerror = () => reject(new Error("the gateway refused the WebSocket"));
  });
  return upstream;
}

/** Passes requests and answers on as they are, streams piece by piece, WebSockets message by message. */
export function startRelay(gateway: string): Relay {
  const answered: string[] = [];
  const server = Bun.serve<Upstream>({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request, relay) {
      const { pathname, search } = new URL(request.url);
      const target = `${gateway}${pathname}${search}`;
      if (request.headers.get("upgrade") === "websocket") {
        const data = await openUpstream(target, request.headers).catch(() => undefined);
        answered.push(`${request.method} ${pathname} ${data === undefined ? 502 : 101}`);
        return data !== undefined && relay.upgrade(request, { data }) ? undefined : new Response(null, { status: 502 });
      }
      const answer = await fetch(target, {
        method: request.method,
        headers: request.headers,
        body: request.body,
        redirect: "manual",
        decompress: false,
        signal: request.signal,
      });
      answered.push(`${request.method} ${pathname} ${answer.status}`);
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    },
    websocket: {
      open(client) {
        client.data.client = client;
      },
      message: (client, message) => client.data.gateway.send(message),
      close: (client) => client.data.gateway.close(),
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, answered, stop: () => server.stop(true) };
}
