/** What engines of vLLM that follow each other are told, by their connector. */
import type { Handover } from "../../engines/engine.ts";
import type { WorkerEntry } from "../snapshot.ts";
import { meetingPlace } from "./meeting-place.ts";

/** What a pair's connector needs of the gateway. */
export interface Relay {
  /** What the half that prefills is told. */
  readonly prefill?: Handover;
  /** What the other is told; `as told`: what the first one says at its end. */
  readonly decode?: Handover | "as told";
  /** The half that decodes has no use for the other. */
  readonly isUseless?: boolean;
}

/** What of a request decides. */
export interface RelayAsk {
  /** Choices that are wanted. */
  readonly n: number;
  /** The rank that the client wants. */
  readonly rank: number | undefined;
}

const transfer = (parameters: object): Handover => ({ kind: "transfer", json: JSON.stringify(parameters) });

const NIXL: Relay = { prefill: transfer({ do_remote_decode: true, do_remote_prefill: false }), decode: "as told" };

/**
 * By the connector of the worker that prefills; `usual`: what it is where nobody tells. What is handed over has one taker: where engines
 * fetch from each other, a request for several choices is left to the one that decodes, which would prefill it all anew. The parameters are
 * those of vLLM's connectors: https://docs.vllm.ai/en/latest/features/nixl_connector_usage.html
 */
export function relayOf(worker: WorkerEntry, ask: RelayAsk, usual?: string): Relay {
  switch (worker.labels?.["kv_connector"] || usual) {
    case "NixlConnector":
      return ask.n === 1 ? NIXL : { isUseless: true };
    case "MooncakeConnector":
      return ask.n === 1 ? mooncake(worker, ask) : { isUseless: true };
    default:
      return ask.n === 1 ? { decode: "as told" } : {};
  }
}

function mooncake(worker: WorkerEntry, ask: RelayAsk): Relay {
  const { host, port } = meetingPlace(worker);
  const engineId = engineIdOf(worker, ask);
  if (engineId === undefined) return { decode: { kind: "remote", host, port } };
  const transfer_id = `xfer-${Bun.randomUUIDv7()}`;
  return {
    prefill: transfer({ do_remote_decode: true, do_remote_prefill: false, transfer_id }),
    decode: transfer({
      do_remote_decode: false,
      do_remote_prefill: true,
      transfer_id,
      remote_engine_id: engineId,
      remote_bootstrap_addr: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    }),
  };
}

/** Each rank has its own; undefined where it is not known which of them prefills. */
function engineIdOf({ labels, facts, rank: own }: WorkerEntry, { rank = own }: RelayAsk): string | undefined {
  const id = labels?.["kv_engine_id"] || undefined;
  if (id === undefined || (facts?.dataParallelSize ?? 1) < 2) return id;
  return rank === undefined ? undefined : `${id}_dp${rank}`;
}
