/** HTTP servers for what no simulated engine does: each answers as its test says. */

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

export interface OpenAiServer {
  readonly url: string;
  readonly port: number;
  /** Requests so far, in order, but for those that ask for the models or the health. */
  readonly asked: readonly Asked[];
  /** Requests whose client left. */
  readonly left: readonly Asked[];
  stop(): Promise<void>;
}

export type Answer = (asked: Asked) => Response | Promise<Response>;

/** A server of the models `ids` (`owner`: who it says that it is) that answers everything else with `answer`. */
export function openAiServer(
  answer: Answer,
  { ids = ["m"], owner = "vllm", tls }: { ids?: string[]; owner?: string; tls?: Bun.TLSOptions } = {},
): OpenAiServer {
  const asked: Asked[] = [];
  const left: Asked[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls !== undefined && { tls }),
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const path = new URL(request.url).pathname;
      if (path === "/v1/models") {
        const data = ids.map((id) => ({ id, object: "model", owned_by: owner, max_model_len: 4096 }));
        return Response.json({ object: "list", data });
      }
      if (path === "/health") return new Response("");
      const one: Asked = { method: request.method, path, headers: request.headers, body: await request.text() };
      asked.push(one);
      request.signal.addEventListener("abort", () => left.push(one));
      return answer(one);
    },
    error: (error) => new Response(error.message, { status: 500 }),
  });
  return {
    url: `http${tls === undefined ? "" : "s"}://127.0.0.1:${server.port}`,
    port: server.port ?? 0,
    asked,
    left,
    stop: () => server.stop(true),
  };
}

/** What a direct stream of Bun is written to. */
export interface StreamWriter {
  write(data: string): unknown;
  flush(): unknown;
}

/** An answer that is written piece by piece; `write` may wait, and what it throws cuts the connection. */
export function streamed(write: (out: StreamWriter) => Promise<void>, headers: Record<string, string> = {}): Response {
  const source = {
    type: "direct",
    async pull(controller: StreamWriter & { close(reason?: Error): void }) {
      try {
        await write(controller);
        controller.close();
      } catch (error) {
        controller.close(error as Error);
      }
    },
  };
  return new Response(new ReadableStream(source as unknown as UnderlyingDefaultSource), {
    headers: { "content-type": "text/event-stream", ...headers },
  });
}

/** A server that is told byte by byte what to send: `onData` gets what a connection sends, by the number of the connection. */
export function rawServer(onData: (text: string, send: RawConnection, connection: number) => void) {
  let connections = 0;
  const server = Bun.listen<number>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = connections++;
      },
      data(socket, bytes) {
        onData(bytes.toString(), { write: (data) => void socket.write(data), end: () => socket.end() }, socket.data);
      },
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, connections: () => connections, stop: () => server.stop(true) };
}

export interface RawConnection {
  write(data: string | Uint8Array): void;
  end(): void;
}
