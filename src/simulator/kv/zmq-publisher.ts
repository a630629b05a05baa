import type { EngineServer } from "../net/engine-server.ts";
import type { KvBatch, KvFeed } from "./feed.ts";
import { kvPayload, type PayloadForm } from "./payload.ts";
import { bindZmtp, type ZmtpConnection } from "./zmtp.ts";

export interface ZmqPublisherOptions {
  readonly host: string;
  /** Port of rank 0, the others follow it; 0: free ones. */
  readonly port: number;
  /** The same for the sockets that replay; undefined: there are none. */
  readonly replayPort: number | undefined;
  readonly form: PayloadForm;
}

/** Ports of rank 0's events and of their replay; those of further ranks follow. */
export interface KvPorts {
  readonly port: number;
  readonly replayPort: number | undefined;
}

export interface ZmqPublisher extends KvPorts {
  /** All sockets. */
  readonly servers: readonly EngineServer[];
}

const NO_BYTES = new Uint8Array(0);
/** Instead of a number, behind the last replayed batch. */
const END_OF_REPLAY = new Uint8Array(8).fill(0xff);
const PORT_TRIES = 20;

/**
 * Publishes KV events as engines do over ZeroMQ: a PUB socket for each rank, at consecutive ports, with messages of topic (empty),
 * number (64 bits, big-endian) and payload; and a ROUTER socket that gives back what its rank still has from a number on. Throws
 * when a port is taken.
 */
export function publishOverZmq(feed: KvFeed, options: ZmqPublisherOptions): ZmqPublisher {
  const { host, form } = options;
  /** Topics by connection, of each rank. */
  const subscribers = feed.ranks.drivers.map(() => new Map<ZmtpConnection, Set<string>>());
  const publishers = bindAll(options.port, feed.ranks.size, (port, rank) =>
    bindZmtp(host, port, "PUB", {
      message([frame = NO_BYTES], connection) {
        const own = subscribers[rank]!;
        const topics = own.get(connection) ?? new Set();
        own.set(connection, topics);
        const topic = Buffer.from(frame.subarray(1)).toString("latin1");
        if (frame[0] === 1) topics.add(topic);
        else topics.delete(topic);
      },
      lost: (connection) => subscribers[rank]!.delete(connection),
    }),
  );
  const { replayPort } = options;
  const replays =
    replayPort === undefined
      ? []
      : bindAll(replayPort, feed.ranks.size, (port, rank) =>
          bindZmtp(host, port, "ROUTER", {
            message(frames, connection) {
              const [empty, start] = frames;
              if (frames.length !== 2 || empty!.length > 0 || start!.length !== 8) return;
              const from = Number(Buffer.from(start!).readBigUInt64BE());
              for (const batch of feed.from(rank, from))
                connection.send([NO_BYTES, numberOf(batch), kvPayload(batch, form)]);
              connection.send([NO_BYTES, END_OF_REPLAY, NO_BYTES]);
            },
          }),
        );
  feed.listen({
    batch(batch) {
      // The topic is empty: only who subscribed to everything hears it.
      const frames = [NO_BYTES, numberOf(batch), kvPayload(batch, form)];
      for (const [connection, topics] of subscribers[batch.rank]!) if (topics.has("")) connection.send(frames);
    },
    lost() {
      // Subscribers see that a number is missing.
    },
    cut() {
      for (const own of subscribers) for (const connection of [...own.keys()]) connection.destroy();
    },
  });
  return { port: publishers[0]!.port, replayPort: replays[0]?.port, servers: [...publishers, ...replays] };
}

function numberOf({ sequence }: KvBatch): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(sequence));
  return bytes;
}

/** Binds at `port` and those behind it; with 0 the system picks the first, anew while those behind it are taken. */
function bindAll(port: number, count: number, bind: (port: number, rank: number) => EngineServer): EngineServer[] {
  for (let attempt = 1; ; attempt++) {
    const servers: EngineServer[] = [];
    try {
      for (let rank = 0; rank < count; rank++) {
        const first = servers[0]?.port ?? port;
        servers.push(bind(first === 0 ? 0 : first + rank, rank));
      }
      return servers;
    } catch (error) {
      for (const server of servers) server.kill();
      if (port !== 0 || attempt === PORT_TRIES) throw error;
    }
  }
}
