import type { ChoiceFinish, GenerateRequest, Handover } from "../../engines/engine.ts";
import type { WorkerEntry } from "../snapshot.ts";
import { meetingPlace } from "./meeting-place.ts";
import { PairTry } from "./pair-try.ts";
import type { TimeLimits } from "./policy.ts";

/** What a pair's connector needs of the gateway. */
interface Relay {
  /** What the half that prefills is told. */
  readonly prefill?: Handover;
  /** What the other is told; `as told`: what the first one says at its end. */
  readonly decode?: Handover | "as told";
  /** The half that decodes has no use for the other. */
  readonly isUseless?: boolean;
}

/**
 * A pair whose halves come one after the other (vLLM): one prefills and makes a single token, which nobody sees; what it says at its end goes
 * to the other. Its blocks are kept for that one until it has fetched or declined them, so that a request which is given up in between goes
 * there all the same, to be given up there.
 */
export class RelayPair extends PairTry {
  private request: GenerateRequest | undefined;
  private limits: TimeLimits | undefined;
  private relay: Relay = {};
  private startedAt = 0;

  start(request: GenerateRequest, limits: TimeLimits): void {
    this.request = request;
    this.limits = limits;
    this.relay = relayOf(this.places.prefill.worker, request);
    this.startedAt = this.fleet.clock.now();
    if (this.relay.isUseless === true) {
      this.places.prefill.done("neutral");
      this.answer.expectNothing();
      this.startDecode(request, limits);
      return;
    }
    this.startPrefill(prefillCopy(request, this.relay.prefill), { ...limits, interTokenMs: 0 });
  }

  protected prefilled({ handover: told }: ChoiceFinish): void {
    const { request, limits, isOver } = this;
    if (request === undefined || limits === undefined || this.isDecoding) return;
    const handover = this.relay.decode === "as told" ? told : this.relay.decode;
    if (isOver && handover === undefined) return; // nothing is kept for anybody
    const { promptLogprobs: _, ...sampling } = request.sampling;
    this.startDecode({ ...request, sampling, ...(handover && { handover }) }, this.rest(limits));
    if (isOver) this.decode.callOff();
  }

  /** What is left of the time to the first token. */
  private rest({ firstTokenMs, interTokenMs }: TimeLimits): TimeLimits {
    const passedMs = this.fleet.clock.now() - this.startedAt;
    return { firstTokenMs: firstTokenMs === 0 ? 0 : Math.max(1, firstTokenMs - passedMs), interTokenMs };
  }

  protected abandon(isEnough: boolean): void {
    if (this.hasBegun) this.stop(isEnough);
    else if (this.isDecoding) this.decode.callOff();
    else if (this.isPrefilling) this.prefill.callOff();
    else this.stop(isEnough);
  }
}

/** The same prompt, and as little else as can be: of the answer nothing is used. It must not end before it is as long as it may be. */
function prefillCopy({ sampling, handover: _, ...request }: GenerateRequest, handover: Handover | undefined) {
  const { promptLogprobs } = sampling;
  return {
    ...request,
    stream: false,
    sampling: {
      temperature: 0,
      maxTokens: 1,
      ignoreEos: true,
      ...(promptLogprobs !== undefined && { promptLogprobs }),
    },
    ...(handover !== undefined && { handover }),
  };
}

const transfer = (parameters: object): Handover => ({ kind: "transfer", json: JSON.stringify(parameters) });

/**
 * By the connector of the worker that prefills. What is handed over has one taker: where engines fetch from each other, a request for
 * several choices is left to the one that decodes, which would prefill it all anew. The parameters are those of vLLM's connectors:
 * https://docs.vllm.ai/en/latest/features/nixl_connector_usage.html
 */
function relayOf(worker: WorkerEntry, request: GenerateRequest): Relay {
  const isOne = (request.sampling.n ?? 1) === 1;
  switch (worker.labels?.["kv_connector"]) {
    case "NixlConnector":
      if (!isOne) return { isUseless: true };
      return { prefill: transfer({ do_remote_decode: true, do_remote_prefill: false }), decode: "as told" };
    case "MooncakeConnector": {
      if (!isOne) return { isUseless: true };
      const { host, port } = meetingPlace(worker);
      const engineId = engineIdOf(worker, request);
      if (engineId === undefined) return { decode: { kind: "remote", host, port } };
      const transfer_id = `xfer-${Bun.randomUUIDv7()}`;
      const address = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
      return {
        prefill: transfer({ do_remote_decode: true, do_remote_prefill: false, transfer_id }),
        decode: transfer({
          do_remote_decode: false,
          do_remote_prefill: true,
          transfer_id,
          remote_engine_id: engineId,
          remote_bootstrap_addr: address,
        }),
      };
    }
    default:
      return isOne ? { decode: "as told" } : {};
  }
}

/** Each rank has its own; undefined where it is not known which of them prefills. */
function engineIdOf({ labels, facts, rank: own }: WorkerEntry, { dataParallelRank }: GenerateRequest) {
  const id = labels?.["kv_engine_id"] || undefined;
  if (id === undefined || (facts?.dataParallelSize ?? 1) < 2) return id;
  const rank = dataParallelRank ?? own;
  return rank === undefined ? undefined : `${id}_dp${rank}`;
}
