/** Where the halves of a pair meet. */
import type { WorkerEntry } from "../snapshot.ts";

/** Of a worker that prefills and tells of no other: that of SGLang's and of Mooncake's bootstrap servers. */
const DEFAULT_PORT = 8998;

/** Labels that name the port: one of our own, and the engines' own word. */
const PORT_LABELS = ["bootstrap_port", "disaggregation_bootstrap_port"];

/** The bootstrap server of a worker that prefills. */
export function meetingPlace({ url, bootstrapPort, labels = {} }: WorkerEntry): { host: string; port: number } {
  const [, bracketed, plain = ""] = /^(?:\w+:\/\/)?(?:\[([^\]]+)\]|([^:/]+))/.exec(url) ?? [];
  const host = bracketed ?? plain;
  if (bootstrapPort !== undefined) return { host, port: bootstrapPort };
  const told = PORT_LABELS.map((name) => Number(labels[name])).find((port) => port >= 1 && port <= 65_535);
  return { host, port: told ?? DEFAULT_PORT };
}

/** A room that nobody else is in: below `rooms`. SGLang chooses the rank that prefills by it. */
export function randomRoom({ facts, rank: own }: WorkerEntry, rooms: bigint, rank = own): bigint {
  const ranks = BigInt(facts?.dataParallelSize ?? 1);
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1));
  if (ranks < 2n || rank === undefined) return random % rooms;
  return (random % (rooms / ranks)) * ranks + BigInt(rank);
}
