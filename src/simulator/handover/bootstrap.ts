import type { Handover, Pairing } from "./handover.ts";

/** What both legs of SGLang and TokenSpeed are told: where the prefill side listens, and the room to meet in. */
export interface BootstrapInfo {
  readonly host: string;
  readonly port: number;
  readonly room: bigint;
}

/** The message `{bootstrap_host, bootstrap_port, bootstrap_room}`, from a request or a JSON body; undefined: it is not there. */
export function bootstrapInfo(message: unknown): BootstrapInfo | undefined {
  const {
    bootstrap_host: host,
    bootstrap_port: port,
    bootstrap_room: room,
  } = (message ?? {}) as Record<string, unknown>;
  if (message === undefined || message === null || (host === undefined && room === undefined)) return undefined;
  return { host: String(host ?? ""), port: Number(port ?? 0), room: BigInt(String(room ?? 0)) };
}

/** What an engine of that role does with it; a regular one takes no notice. */
export function bootstrapHandover(info: BootstrapInfo | undefined, pairing: Pairing | undefined): Handover | undefined {
  if (!info || !pairing) return undefined;
  const key = `room ${info.room}`;
  if (pairing.role === "prefill") return { kind: "give", key, order: "bootstrap", tells: false };
  if (pairing.role !== "decode") return undefined;
  return { kind: "take", key, host: info.host, port: info.port, waits: true, countsAsCached: false };
}

/** Details of INVALID_ARGUMENT where a paired engine gets a request that names no room. */
export function roomProblem(info: BootstrapInfo | undefined, pairing: Pairing | undefined): string | undefined {
  return pairing && pairing.role !== "regular" && !info
    ? "Invalid request: Disaggregated request received without bootstrap room id"
    : undefined;
}

/** The rank that prefills for a room. */
export function rankOfRoom(
  info: BootstrapInfo | undefined,
  pairing: Pairing | undefined,
  ranks: number,
): number | undefined {
  return info && pairing?.role === "prefill" ? Number(info.room % BigInt(ranks)) : undefined;
}
