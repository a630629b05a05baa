import type { Handover, HandoverCounts, Pairing } from "./handover.ts";

/** `kv_transfer_params` of vLLM: the JSON object, or the older message with an address alone. */
export interface TransferParams {
  readonly json: Readonly<Record<string, unknown>> | undefined;
  readonly typed: { readonly host: string; readonly port: number } | undefined;
}

/** What an engine with a connector does with them; parameters that make no sense are left aside, and the prompt is computed. */
export function transferHandover(
  { json, typed }: TransferParams,
  pairing: Pairing | undefined,
  requestId: string,
  counts: HandoverCounts,
): Handover | undefined {
  if (pairing?.connector === undefined) return undefined;
  const isNixl = pairing.connector === "nixl";
  if (pairing.depot && json?.["do_remote_decode"] === true) {
    const { transfer_id: id } = json;
    const key = !isNixl && typeof id === "string" ? `transfer ${id}` : `request ${requestId}`;
    return { kind: "give", key, order: "after", tells: isNixl };
  }
  const take = json?.["do_remote_prefill"] === true ? (isNixl ? nixlTake(json) : mooncakeTake(json)) : undefined;
  if (take) return { ...take, kind: "take", countsAsCached: true };
  if (json?.["do_remote_prefill"] === true) counts.recomputed++;
  if (isNixl || json !== undefined) return undefined;
  // Mooncake whose engine ids are not known: both legs have one request id, and only the decode leg has parameters.
  if (typed && pairing.role !== "prefill")
    return { kind: "take", key: `request ${requestId}`, ...typed, waits: true, countsAsCached: true };
  if (pairing.role === "prefill") return { kind: "give", key: `request ${requestId}`, order: "after", tells: false };
  return undefined;
}

type Target = Pick<Extract<Handover, { kind: "take" }>, "key" | "host" | "port" | "engineId" | "blockIds" | "waits">;

function nixlTake(params: Readonly<Record<string, unknown>>): Target | undefined {
  const {
    remote_request_id: id,
    remote_engine_id: engineId,
    remote_host: host,
    remote_port: port,
    remote_block_ids: blockIds,
  } = params;
  if (typeof id !== "string" || typeof engineId !== "string" || typeof host !== "string") return undefined;
  if (!Number.isInteger(port) || !Array.isArray(blockIds) || blockIds.length === 0) return undefined;
  return { key: `request ${id}`, host, port: port as number, engineId, blockIds: blockIds.map(Number), waits: false };
}

function mooncakeTake(params: Readonly<Record<string, unknown>>): Target | undefined {
  const { transfer_id: id, remote_engine_id: engineId, remote_bootstrap_addr: address } = params;
  if (typeof id !== "string" || typeof engineId !== "string" || typeof address !== "string") return undefined;
  const url = URL.parse(address);
  if (!url?.port) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { key: `transfer ${id}`, host, port: Number(url.port), engineId, waits: true };
}

export const CONNECTOR_NAMES = { nixl: "NixlConnector", mooncake: "MooncakeConnector" } as const;
export const KV_ROLES = { regular: "kv_both", prefill: "kv_producer", decode: "kv_consumer" } as const;
