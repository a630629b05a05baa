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
