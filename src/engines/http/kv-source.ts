/** Where an HTTP server's KV events come from: its publisher is another port, which it may name or not. */
import type { EngineFacts } from "../facts.ts";
import { parseZmqAddress } from "../kv/zmq-address.ts";
import type { KvEnd, KvSource, KvSubscription } from "../kv-events.ts";
import { runtimeOf } from "./models.ts";
import { KV_EVENTS_LABEL, KV_REPLAY_LABEL } from "./server-info.ts";

/** What the gateway was told of publishers: `tcp://host:port`, `*` for the server's own host. */
export interface KvPublished {
  /** Of the one server. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Of all of them. */
  readonly endpoint?: string | undefined;
  readonly replayEndpoint?: string | undefined;
}

/** Undefined: nothing is known of a publisher. */
export function httpKvSource(
  url: string,
  facts: EngineFacts,
  { labels = {}, endpoint, replayEndpoint }: KvPublished = {},
): (() => KvSource) | undefined {
  const address = (text: string | undefined) =>
    text === undefined ? undefined : parseZmqAddress(text, new URL(url).hostname.replace(/^\[|\]$/g, ""));
  const events = address(labels[KV_EVENTS_LABEL] ?? facts.labels[KV_EVENTS_LABEL] ?? endpoint);
  if (events === undefined) return undefined;
  const replay = address(labels[KV_REPLAY_LABEL] ?? facts.labels[KV_REPLAY_LABEL] ?? replayEndpoint);
  const ranks = Math.max(1, Number(labels["dp_size"] ?? facts.dataParallelSize) || 1);
  const publisher = runtimeOf(facts) === "sglang" ? "sglang" : "vllm";
  return () =>
    lateSource(async () => (await import("../kv/publisher.ts")).zmqKvSource({ events, replay, ranks, publisher }));
}

/** A source whose code is loaded when somebody subscribes. */
function lateSource(open: () => Promise<KvSource>): KvSource {
  return {
    subscribe(onBatch, onEnd) {
      let inner: KvSubscription | undefined;
      let isClosed = false;
      let isPaused = false;
      const end = (why: KvEnd, message: string): void => {
        if (!isClosed) onEnd(why, message);
      };
      open().then(
        (source) => {
          if (isClosed) return;
          inner = source.subscribe(onBatch, end);
          if (isPaused) inner.pause();
        },
        (error: unknown) => end("lost", String(error)),
      );
      return {
        close() {
          isClosed = true;
          inner?.close();
        },
        pause() {
          isPaused = true;
          inner?.pause();
        },
        resume() {
          isPaused = false;
          inner?.resume();
        },
      };
    },
  };
}
