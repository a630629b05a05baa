import { EngineError } from "../../engines/engine.ts";
import { type Doubted, mayBeShared } from "../../fleet/dispatch/pair-doubt.ts";
import type { HttpLease, HttpLeasePair, Outcome } from "../../fleet/lease.ts";

/** The half of a pair of which a failure is said; undefined: nobody can tell. */
type Half = "prefill" | "decode" | undefined;

/** The two places of a pair as one: the answer's is that of the half that decodes, and failures are those of the half that is named. */
export class HttpPair implements HttpLease {
  readonly prefill: HttpLease;
  readonly decode: HttpLease;
  /** Whose failure it is if the try fails now. */
  suspect: Half = "decode";
  /** The halves have to do with each other: what one fails by may be what the other has not done. */
  isMeeting = false;
  /** What the answer tells of a cache is right: nobody has prefilled for it. */
  private isAlone = false;

  constructor({ prefill, decode }: HttpLeasePair) {
    this.prefill = prefill;
    this.decode = decode;
  }

  get worker() {
    return this.suspect === "prefill" ? this.prefill.worker : this.decode.worker;
  }

  get choice() {
    return this.prefill.choice;
  }

  get isProbe() {
    return this.decode.isProbe;
  }

  get engine() {
    return this.decode.engine;
  }

  /** The half that decodes does it all. */
  leaveOutPrefill(): void {
    this.isAlone = true;
    this.prefill.done("neutral");
  }

  /** The prompt is prefilled; `outcome`: what is known of the worker by that. */
  prefilled(outcome: Outcome = "ok"): void {
    this.prefill.begun();
    this.prefill.done(outcome);
    this.suspect = "decode";
  }

  isInDoubt(error: unknown): boolean {
    return this.isMeeting && error instanceof EngineError && mayBeShared(error);
  }

  get doubted(): Doubted {
    const { prefill, decode, suspect } = this;
    const charged = suspect === undefined ? undefined : this.worker;
    return { prefill: prefill.worker, decode: decode.worker, charged };
  }

  begun(): void {
    this.prefilled(); // there is nothing to decode before
    this.decode.begun();
  }

  progress(): void {
    this.decode.progress();
  }

  hold(isHeld: boolean): void {
    this.decode.hold(isHeld);
  }

  limit(limits: Parameters<HttpLease["limit"]>[0], onElapsed: (error: EngineError) => void): void {
    this.decode.limit(limits, onElapsed);
  }

  cached(tokens: number, promptTokens?: number): void {
    if (this.isAlone) this.decode.cached(tokens, promptTokens);
  }

  done(outcome: Outcome): void {
    this.prefill.done(this.suspect === "prefill" ? outcome : "neutral");
    this.decode.done(this.suspect === "decode" ? outcome : "neutral");
  }
}
