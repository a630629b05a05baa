import type { Model } from "../fleet/view.ts";
import { openTokenizer } from "../tokenizer/load.ts";
import { sampleText } from "../tokenizer/sample-text.ts";
import type { ServerContext } from "./context.ts";
import { rehearse } from "./rehearsal.ts";

/** Requests at a time: tokens of several streams come in one read, and no real request waits for more than these. */
const AT_ONCE = 4;
/** Tokens of an answer, and of most of the messages; some are longer. */
const ANSWER_TOKENS = 24;
const SHORT = 100;
const LONG = 1000;
/** For each model: about 100 ms of a core behind what the first request takes. More compiles more, which no client waits for. */
const REQUESTS = 40;
/** Ends it on a machine that has other things to do. */
const MOST_MS = 2000;

export interface WarmUpOptions {
  /** What the server hands requests to. */
  readonly handle: (request: Request) => Response | Promise<Response>;
  readonly context: ServerContext;
  /** Those of the fleet's that are new. */
  readonly models: readonly Model[];
}

/**
 * Sends chats through the app, each on its way from a socket to an engine and back, so that what compiles while it runs is compiled
 * before the first client comes. The engine is a stand-in and the cache of token ids is a copy: nothing is left behind. Lasts a fraction
 * of a second, gives way to other work many times in it, and ends at once when real requests come, which do the same.
 */
export async function warmUp({ handle, context, models }: WarmUpOptions): Promise<void> {
  if (!context.config.warmup) return;
  for (const model of models) {
    if (model.entry.pooling !== undefined || model.template === undefined) continue; // it does not chat
    await rehearseChats(handle, context, model);
  }
}

async function rehearseChats(
  handle: WarmUpOptions["handle"],
  context: WarmUpOptions["context"],
  model: Model,
): Promise<void> {
  const { scopes } = context;
  const rehearsal = rehearse(model, context, ANSWER_TOKENS);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch(request) {
      rehearsal.add(request);
      return handle(request);
    },
    error: () => new Response(null, { status: 500 }),
  });
  try {
    const bodies = messagesFor(model);
    const until = performance.now() + MOST_MS;
    let sent = 0;
    const next = (): string | undefined => {
      const isOver = sent >= REQUESTS || performance.now() > until || scopes.size >= AT_ONCE;
      return isOver ? undefined : requestText(bodies(sent++), context.config.apiKey);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, () => converse(server.port ?? 0, next)));
  } finally {
    await server.stop(true);
    rehearsal.close();
  }
}

/** Bodies of requests by number: all different, one in eight is long, one in eight is not streamed. */
function messagesFor({ entry }: Model): (i: number) => string {
  const tokenizer = openTokenizer(entry.tokenizer);
  const [short, long] = [SHORT, LONG].map((count) => sampleText(tokenizer, count, count));
  return (i) =>
    JSON.stringify({
      model: entry.id,
      messages: [
        { role: "system", content: "You are a helpful assistant." },
        { role: "user", content: `${i} ${i % 8 === 3 ? long : short}` },
      ],
      max_tokens: ANSWER_TOKENS,
      ...(i % 8 !== 7 && { stream: true, stream_options: { include_usage: i % 2 === 0 } }),
    });
}

function requestText(body: string, apiKey: string | undefined): string {
  const key = apiKey === undefined ? "" : `Authorization: Bearer ${apiKey}\r\n`;
  return `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${key}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** The last chunk of an answer that is sent in chunks. */
const LAST_CHUNK = "\r\n0\r\n\r\n";

/** Reads one answer: whether it is whole is known from its length, or from its last chunk. */
class AnswerReader {
  private head = "";
  private tail = "";
  private bytes = 0;
  /** Of the whole answer; undefined until its head tells, and where it has none. */
  private length: number | undefined;

  /** True when the answer is whole. Throws for one that is not 200. */
  read(bytes: Buffer): boolean {
    if (this.head === "") {
      this.head = bytes.toString("latin1");
      if (!this.head.startsWith("HTTP/1.1 200 ")) throw new Error(`a rehearsed request failed: ${this.head}`);
      const length = /^content-length: (\d+)\r$/im.exec(this.head)?.[1];
      if (length !== undefined) this.length = this.head.indexOf("\r\n\r\n") + 4 + Number(length);
    }
    this.bytes += bytes.length;
    if (this.length !== undefined) return this.bytes >= this.length;
    this.tail += bytes.toString("latin1", Math.max(0, bytes.length - LAST_CHUNK.length));
    this.tail = this.tail.slice(-LAST_CHUNK.length);
    return this.tail === LAST_CHUNK;
  }
}

/** Sends one request after another on one connection until there is no next. Rejects if one fails. */
function converse(port: number, next: () => string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = new AnswerReader();
    const send = (socket: { write(text: string): number; end(): void }): void => {
      const request = next();
      answer = new AnswerReader();
      if (request === undefined) socket.end();
      else socket.write(request);
    };
    const connecting = Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open: send,
        data(socket, bytes) {
          try {
            if (answer.read(bytes)) send(socket);
          } catch (error) {
            reject(error);
            socket.end();
          }
        },
        close: () => resolve(),
        error: (_socket, error) => reject(error),
      },
    });
    connecting.catch(reject);
  });
}
