import { runLoad } from "./load.ts";
import type { LoadOptions } from "./options.ts";

/** Requests and events that make the just-in-time compiler translate the client: about 0.3 s. */
const REQUESTS = 1500;
const EVENTS = 8;

function cannedReply(): string {
  const head = '{"id":"chatcmpl-0","object":"chat.completion.chunk","created":1,"model":"m","choices":';
  let events = "";
  for (let i = 0; i < EVENTS; i++)
    events += `data: ${head}[{"index":0,"delta":{"content":" word"},"finish_reason":null}],"usage":null}\n\n`;
  events += `data: ${head}[{"index":0,"delta":{},"finish_reason":"length"}],"usage":null}\n\n`;
  events += `data: ${head}[],"usage":{"prompt_tokens":1,"completion_tokens":${EVENTS}}}\n\ndata: [DONE]\n\n`;
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${events.length.toString(16)}\r\n${events}\r\n0\r\n\r\n`;
}

/**
 * Lets the client talk to itself before it measures: the first hundreds of requests of a cold client would add its own slowness to
 * the time to first token of a gateway.
 */
export async function warmUpClient(options: LoadOptions): Promise<void> {
  const reply = cannedReply();
  const body = new WeakMap<object, number>();
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        // Requests come one at a time; what is left of one is counted down.
        let left = body.get(socket) ?? 0;
        left =
          left > 0
            ? left - bytes.length
            : Number(/content-length: (\d+)/i.exec(bytes.toString("latin1", 0, 400))?.[1] ?? 0) -
              (bytes.length - bytes.indexOf("\r\n\r\n") - 4);
        body.set(socket, left);
        if (left <= 0) socket.write(reply);
      },
    },
  });
  const result = await runLoad({
    ...options,
    url: new URL(`http://127.0.0.1:${server.port}`),
    path: "/v1/chat/completions",
    unary: false,
    rate: undefined,
    streams: 4,
    requests: REQUESTS,
    warmup: 0,
    promptTokens: 100,
    expect: EVENTS,
    pids: [],
  });
  server.stop(true);
  if (result.errors > 0) throw new Error(`the load generator can't read its own canned reply: ${result.first_error}`);
}
