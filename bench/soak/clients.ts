/** The clients of the soak: they ask, read, leave early at times, and tell how each answer ended. */
import { Connection } from "../loadgen/connection.ts";
import { mixSeed, Random } from "../loadgen/random.ts";
import { WORDS } from "../loadgen/words.ts";
import { Answer, type Outcome, type Wanted } from "./answer.ts";

/** Kinds of requests. */
export type Kind = "completion" | "chat" | "unary" | "http";

export interface ClientOptions {
  /** The gateway. */
  readonly url: URL;
  /** Model of the gRPC engines. */
  readonly model: string;
  /** Model of the HTTP engine; without one, requests of that kind are chats of the other. */
  readonly httpModel: string | undefined;
  readonly seed: number;
  /** Share of the requests whose client leaves. */
  readonly aborts: number;
  /** An answer that has not ended by then is lost. */
  readonly lostAfterMs: number;
  onEnd(kind: Kind, outcome: Outcome): void;
}

/** Of 20 requests. */
const MIX: readonly (readonly [Kind, number])[] = [
  ["completion", 9],
  ["chat", 5],
  ["unary", 2],
  ["http", 4],
];
const DECK: readonly Kind[] = MIX.flatMap(([kind, count]) => Array<Kind>(count).fill(kind));

const LEAST_WORDS = 4;
const MOST_WORDS = 60;
const LEAST_TOKENS = 16;
const MOST_TOKENS = 160;
/** Every so many requests a connection is not used again: the next one may come to another thread. */
const REQUESTS_PER_CONNECTION = 8;

interface Ask {
  readonly kind: Kind;
  readonly wanted: Wanted;
  readonly message: Buffer;
  /** The client leaves after that many tokens; never: Infinity. */
  readonly leavesAfter: number;
}

/** Keeps connections, and sends one request at a time on each. */
export class Clients {
  /** Requests under way. */
  running = 0;
  private sent = 0;
  private readonly free: { readonly connection: Connection; uses: number }[] = [];

  constructor(private readonly options: ClientOptions) {}

  /** Sends the next request; resolves when it has ended. Never rejects. */
  async send(only?: Kind): Promise<Outcome> {
    const ask = this.ask(this.sent++, only);
    this.running++;
    const outcome = await this.exchange(ask);
    this.running--;
    this.options.onEnd(ask.kind, outcome);
    return outcome;
  }

  close(): void {
    for (const { connection } of this.free) connection.close();
  }

  private exchange({ wanted, message, leavesAfter }: Ask): Promise<Outcome> {
    return new Promise((resolve) => {
      const answer = new Answer(wanted);
      const line = this.free.pop() ?? {
        connection: new Connection(this.options.url.hostname, Number(this.options.url.port)),
        uses: 0,
      };
      let over = false;
      const end = (outcome: Outcome, reuse: boolean) => {
        over = true;
        clearTimeout(timer);
        if (reuse && ++line.uses < REQUESTS_PER_CONNECTION) this.free.push(line);
        else line.connection.close();
        resolve(outcome);
      };
      const lost = () => end({ kind: "wrong", why: `no end in time, after ${answer.tokens} tokens` }, false);
      const timer = setTimeout(lost, this.options.lostAfterMs);
      line.connection.send(message, {
        onBody: (status, bytes, from, to) => {
          if (over) return;
          answer.feed(status, bytes.toString("latin1", from, to)); // the words are ASCII
          if (answer.tokens >= leavesAfter) end(answer.leave(), false);
        },
        onDone: (status, problem) => {
          if (!over) end(answer.end(status, problem), problem === undefined);
        },
      });
    });
  }

  /** Request number `index`: each is like no other, and the same in every run of a seed. */
  private ask(index: number, only: Kind | undefined): Ask {
    const random = new Random(mixSeed(this.options.seed, index));
    const between = (least: number, most: number) => least + random.below(most - least + 1);
    const chosen = only ?? DECK[random.below(DECK.length)]!;
    const kind = chosen === "http" && this.options.httpModel === undefined ? "chat" : chosen;
    const words = Array.from({ length: between(LEAST_WORDS, MOST_WORDS) }, () => WORDS[random.below(WORDS.length)]!);
    const maxTokens = between(LEAST_TOKENS, MOST_TOKENS);
    const streams = kind !== "unary";
    const wanted: Wanted = {
      shows: kind === "http" ? "text" : kind === "chat" ? "ids" : "ids and text",
      streams,
      words,
      maxTokens,
    };
    const leaves = only === undefined && streams && random.unit() <= this.options.aborts;
    const leavesAfter = leaves ? between(1, maxTokens - 1) : Number.POSITIVE_INFINITY;
    return { kind, wanted, message: this.message(kind, wanted), leavesAfter };
  }

  private message(kind: Kind, { words, maxTokens, streams }: Wanted): Buffer {
    const { url, model, httpModel } = this.options;
    const text = words.map((word) => ` ${word}`).join("");
    const chats = kind === "chat" || kind === "http";
    const body = JSON.stringify({
      model: kind === "http" ? httpModel : model,
      ...(chats ? { messages: [{ role: "user", content: text }] } : { prompt: text }),
      max_tokens: maxTokens,
      stream: streams,
      ...(streams && { stream_options: { include_usage: true } }),
      ...(kind !== "http" && { return_token_ids: true }),
    });
    const path = chats ? "/v1/chat/completions" : "/v1/completions";
    const head = [`POST ${path} HTTP/1.1`, `Host: ${url.host}`, "Content-Type: application/json"];
    return Buffer.from(`${head.join("\r\n")}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }
}
