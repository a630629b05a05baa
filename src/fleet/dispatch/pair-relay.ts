import type { ChoiceFinish, GenerateRequest, Handover } from "../../engines/engine.ts";
import type { Attempt } from "./attempt.ts";
import { connectorMode } from "./pair-meter.ts";
import { PairTry } from "./pair-try.ts";
import type { TimeLimits } from "./policy.ts";
import { type Relay, relayOf } from "./relay.ts";

/**
 * A pair whose halves come one after the other (vLLM): one prefills and makes a single token, which nobody sees; what it says at its end goes
 * to the other. Its blocks are kept for that one until it has fetched or declined them, so that a request which is given up in between goes
 * there all the same, to be given up there.
 */
export class RelayPair extends PairTry {
  protected readonly way = "transfer";
  private request: GenerateRequest | undefined;
  private limits: TimeLimits | undefined;
  private relay: Relay = {};
  private startedAt = 0;

  start(request: GenerateRequest, limits: TimeLimits): void {
    this.request = request;
    this.limits = limits;
    this.relay = relayOf(this.places.prefill.worker, { n: request.sampling.n ?? 1, rank: request.dataParallelRank });
    this.startedAt = this.fleet.clock.now();
    if (this.relay.isUseless === true) {
      this.places.prefill.done("neutral");
      this.answer.expectNothing();
      this.startDecode(request, limits);
      return;
    }
    this.fleet.observer.paired(connectorMode(this.places.prefill.worker));
    this.startPrefill(prefillCopy(request, this.relay.prefill), { ...limits, interTokenMs: 0 });
  }

  protected prefilled({ handover: told }: ChoiceFinish): void {
    const { request, limits, isOver } = this;
    if (request === undefined || limits === undefined || this.isDecoding) return;
    const handover = this.relay.decode === "as told" ? told : this.relay.decode;
    if (isOver && handover === undefined) return; // nothing is kept for anybody
    this.prefill.isJudgedLater = handover !== undefined;
    if (handover === undefined) this.meter?.alone();
    const { promptLogprobs: _, ...sampling } = request.sampling;
    this.startDecode({ ...request, sampling, ...(handover && { handover }) }, this.rest(limits));
    if (isOver) this.decode.callOff();
  }

  protected mayBeTheOthers(half: Attempt): boolean {
    return half === this.decode && this.prefill.isJudgedLater;
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
