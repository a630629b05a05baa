import type { EngineError, GenerateRequest, Handover } from "../../engines/engine.ts";
import type { LeasePair } from "../lease.ts";
import type { FleetView } from "../view.ts";
import type { Tries } from "./attempt.ts";
import { meetingPlace, randomRoom } from "./meeting-place.ts";
import { NO_LIMITS, PairTry } from "./pair-try.ts";
import type { TimeLimits } from "./policy.ts";

/**
 * A pair whose halves get the same request at once (SGLang, TokenSpeed): they find each other by a room at the one that prefills. Either
 * waits for the other, so both are told when the request is over, in every phase.
 */
export class MeetingPair extends PairTry {
  protected readonly way = "meeting";

  constructor(
    tries: Tries,
    fleet: FleetView,
    places: LeasePair,
    /** Numbers of rooms are below. */
    private readonly rooms: bigint,
  ) {
    super(tries, fleet, places);
  }

  start(request: GenerateRequest, limits: TimeLimits): void {
    const asked = { ...request, handover: this.meeting(request) };
    this.answer.expect({ promptLogprobs: request.sampling.promptLogprobs !== undefined });
    this.startPrefill(asked, NO_LIMITS);
    if (!this.isOver) this.startDecode(asked, NO_LIMITS);
    if (!this.isOver) this.places.decode.limit(limits, (error) => this.tooSlow(error));
  }

  private meeting({ dataParallelRank }: GenerateRequest): Handover {
    const { worker } = this.places.prefill;
    return { kind: "bootstrap", ...meetingPlace(worker), room: randomRoom(worker, this.rooms, dataParallelRank) };
  }

  protected prefilled(): void {}

  /** The one that prefills has said all when the other has the cache. */
  protected mayBeTheOthers(): boolean {
    return !this.hasPrefilled;
  }

  /** Before the prompt is known to be prefilled nobody can say which of the two is slow. */
  private tooSlow(error: EngineError): void {
    if (this.hasPrefilled || this.hasBegun) this.decode.fail(error);
    else {
      this.doubt(undefined);
      this.end(error);
    }
  }

  protected abandon(isEnough: boolean): void {
    this.stop(isEnough);
  }
}
