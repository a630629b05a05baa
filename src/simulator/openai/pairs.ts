import { bootstrapHandover, bootstrapInfo, rankOfRoom, roomProblem } from "../handover/bootstrap.ts";
import { dropAt } from "../handover/fetch.ts";
import type { Handover } from "../handover/handover.ts";
import { transferHandover } from "../handover/transfer-params.ts";
import type { SimulatorHost } from "../host.ts";
import { type Body, isRecord, type TextRequest } from "./request.ts";

/** What a body says of the other engine of a pair. */
export interface PairRequest {
  readonly rank: number | undefined;
  readonly handover: Handover | undefined;
  /** Why it is refused. */
  readonly problem: string | undefined;
}

/** Reads `bootstrap_*` of SGLang or `kv_transfer_params` of vLLM; a body with several prompts hands nothing over. */
export function pairRequest(host: SimulatorHost, body: Body, request: TextRequest, requestId: string): PairRequest {
  const { pairing, ranks, counts } = host;
  const { rank } = request;
  if (!pairing || request.prompts.length !== 1) return { rank, handover: undefined, problem: undefined };
  if (pairing.connector === undefined) {
    const room = bootstrapInfo(body);
    return {
      rank: rankOfRoom(room, pairing, ranks.size) ?? rank,
      handover: bootstrapHandover(room, pairing),
      problem: roomProblem(room, pairing),
    };
  }
  const { kv_transfer_params: params } = body;
  const json = isRecord(params) ? params : undefined;
  const handover = transferHandover({ json, typed: undefined }, pairing, requestId, counts.handover);
  return { rank, handover, problem: undefined };
}

/** A request is not run: what the other engine keeps for it may go. */
export function refusePair({ handover }: PairRequest): void {
  if (handover?.kind === "take" && handover.countsAsCached) dropAt(handover);
}
