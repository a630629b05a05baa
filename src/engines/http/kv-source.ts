/** Where KV events come from that an engine publishes at another port: an HTTP server may name it or not, a gRPC one does not. */
import type { EngineFacts } from "../facts.ts";
import type { KvPublisher } from "../kv/msgpack.ts";
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
  const all = { [KV_EVENTS_LABEL]: endpoint, [KV_REPLAY_LABEL]: replayEndpoint, ...facts.labels, ...labels };
  return publishedKvSource(url, all, facts, runtimeOf(facts) === "sglang" ? "sglang" : "vllm");
}

/** By the labels of a worker. Undefined: they name no publisher. */
export function publishedKvSource(
  url: string,
  labels: Readonly<Record<string, string | undefined>>,
  { dataParallelSize }: Pick<EngineFacts, "dataParallelSize">,
  publisher: KvPublisher,
): (() => KvSource) | undefined {
  const address = (text: string | undefined) =>
    text === undefined ? undefined : parseZmqAddress(text, new URL(url).hostname.replace(/^\[|\]$/g, ""));
  const events = address(labels[KV_EVENTS_LABEL]);
  if (events === undefined) return undefined;
  const replay = address(labels[KV_REPLAY_LABEL]);
  const ranks = Math.max(1, Number(labels["dp_size"] ?? dataParallelSize) || 1);
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
