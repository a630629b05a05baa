/**
 * A channel of messages between gateways, by publish and subscribe of Redis or Valkey (tested with Redis 7.0). Messages that are sent
 * while the server is away are lost, and nobody waits for them.
 */
import { randomBytes } from "node:crypto";

export interface Channel {
  /** False while the server is away. */
  readonly isUp: boolean;
  /** False: it was not sent, as the server is away or slow. */
  send(message: Uint8Array): boolean;
  close(): void;
}

export interface ChannelOptions {
  readonly url: string;
  readonly name: string;
  /** A message of another gateway. */
  readonly received: (message: Uint8Array) => void;
  readonly up: () => void;
  /** The server has gone away, or could not be reached at first; not told again until it was there. */
  readonly down: (reason: string) => void;
  readonly timing?: ChannelTiming;
}

export interface ChannelTiming {
  readonly connectMs: number;
  /** Between the messages by which a channel finds out that it still works both ways. */
  readonly beatMs: number;
  /** Pause before the first new try; the next ones are longer, up to `mostPauseMs`. */
  readonly pauseMs: number;
  readonly mostPauseMs: number;
}

const TIMING: ChannelTiming = { connectMs: 2000, beatMs: 1000, pauseMs: 250, mostPauseMs: 10_000 };
/** Missed beats after which a connection counts as dead. */
const MOST_MISSED = 3;
/** Bytes whose arrival the server has not confirmed yet. */
const MOST_PENDING = 1 << 20;
/** Longer messages of others are no batches of ours. */
const MOST_MESSAGE = 1 << 20;
const ID_LENGTH = 8;

/** Opens the channel; it keeps trying for as long as it takes. */
export function openChannel({ url, name, received, up, down, timing = TIMING }: ChannelOptions): Channel {
  // Bun's client gives messages as text only, and bytes that are no UTF-8 would be lost
  const id = randomBytes((ID_LENGTH * 3) / 4).toString("base64url");
  let isClosed = false;
  let wasTold = false;
  let tries = 0;
  let link: Link | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function heard(text: string): void {
    if (text.length > MOST_MESSAGE || text.length < ID_LENGTH) return;
    if (text.startsWith(id)) link?.heardItself();
    else if (text.length > ID_LENGTH) received(Buffer.from(text.slice(ID_LENGTH), "base64"));
  }

  async function run(): Promise<void> {
    while (!isClosed) {
      const reason = await live().catch(reasonOf);
      if (isClosed) return;
      if (!wasTold) {
        wasTold = true;
        down(reason);
      }
      const pause = Math.min(timing.mostPauseMs, timing.pauseMs * 2 ** Math.min(tries++, 20));
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, pause * (0.5 + Math.random() / 2)); // gateways do not come back all at once
      });
    }
  }

  /** Gives the reason of its end. */
  async function live(): Promise<string> {
    const mine = await connected(url, name, heard, timing.connectMs);
    if (isClosed) {
      mine.close();
      return "it was closed";
    }
    link = mine;
    tries = 0;
    wasTold = false;
    up();
    try {
      for (;;) {
        mine.send(id);
        if (await mine.endsWithin(timing.beatMs)) return "the connection was lost";
        if (mine.missed() > MOST_MISSED) return "it does not answer";
      }
    } finally {
      link = undefined;
      mine.close();
    }
  }

  void run();
  return {
    get isUp() {
      return link !== undefined;
    },
    send: (message) => link?.send(id + Buffer.from(message).toString("base64")) ?? false,
    close() {
      isClosed = true;
      clearTimeout(timer);
      link?.close();
    },
  };
}

/** Two connections, as one that has subscribed can do nothing else. */
interface Link {
  send(text: string): boolean;
  /** Resolves with true as soon as one of the connections is lost. */
  endsWithin(ms: number): Promise<boolean>;
  heardItself(): void;
  /** Beats since it heard itself last. */
  missed(): number;
  close(): void;
}

async function connected(
  url: string,
  name: string,
  heard: (text: string) => void,
  connectionTimeout: number,
): Promise<Link> {
  const options: Bun.RedisOptions = { connectionTimeout, maxRetries: 0 };
  const publisher = new Bun.RedisClient(url, options);
  const subscriber = new Bun.RedisClient(url, options);
  const ended = Promise.withResolvers<true>();
  const close = (): void => {
    ended.resolve(true);
    publisher.close();
    subscriber.close();
  };
  publisher.onclose = close;
  subscriber.onclose = close;
  // Bun's own limit ends with the greeting: what comes behind it may never be answered
  const tooLate = Promise.withResolvers<never>();
  const late = () => tooLate.reject(new Error("it does not answer"));
  const timer = setTimeout(late, 2 * connectionTimeout);
  try {
    const answered = publisher
      .send("PING", []) // Bun 1.4.5: connect() does not say why it was refused
      .then(() => subscriber.subscribe(name, heard));
    await Promise.race([answered, tooLate.promise]);
  } catch (error) {
    close();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  let pending = 0;
  let beats = 0;
  return {
    close,
    send(text) {
      if (pending + text.length > MOST_PENDING) return false;
      pending += text.length;
      const done = (): void => {
        pending -= text.length;
      };
      publisher.publish(name, text).then(done, close);
      return true;
    },
    async endsWithin(ms) {
      const { promise: late, resolve } = Promise.withResolvers<false>();
      const timer = setTimeout(resolve, ms, false);
      const isOver = await Promise.race([ended.promise, late]);
      clearTimeout(timer);
      beats++;
      return isOver;
    },
    heardItself() {
      beats = 0;
    },
    missed: () => beats,
  };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return code === "ERR_REDIS_CONNECTION_CLOSED" ? "it cannot be reached" : String(message);
}
