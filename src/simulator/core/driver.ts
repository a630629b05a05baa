import type { EngineCore } from "./engine-core.ts";
import type { Sequence, SequenceRequest } from "./sequence.ts";
import type { Step } from "./step.ts";

/** Real milliseconds that instant mode works before it lets sockets be read. */
const SLICE_MS = 3;

/**
 * Runs a core in real time: a step's tokens leave when its virtual end has come. Speed 2 runs twice as fast; 0 takes no time at
 * all. A late timer delays that one step only: ends are computed from ends, not from when the timer fired.
 */
export class EngineDriver {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private immediate: ReturnType<typeof setImmediate> | undefined;
  private step: Step | undefined;
  /** Real time at which the running step began, and ends. */
  private at = 0;
  private endAt = 0;
  private stopped = false;
  private paused = false;
  /** Called after every step, when its tokens are out. */
  onStep: (() => void) | undefined;

  constructor(
    readonly core: EngineCore,
    private readonly speed: number,
    private readonly clock: () => number = () => performance.now(),
  ) {}

  submit(request: SequenceRequest): Sequence {
    const sequence = this.core.submit(request);
    this.wake();
    return sequence;
  }

  abort(sequence: Sequence): boolean {
    const done = this.core.abort(sequence);
    // Its memory may be what others wait for.
    if (this.core.waiting.length > 0) this.wake();
    return done;
  }

  /** Frees what a finished sequence has kept. */
  letGo(sequence: Sequence): void {
    if (this.core.letGo(sequence) && this.core.waiting.length > 0) this.wake();
  }

  /** The sequence gets no more tokens, and keeps its place. */
  hold(sequence: Sequence): void {
    this.core.hold(sequence);
  }

  /** Stops the clock until `resume`; what should have ended meanwhile ends then, as in a process that was stopped. */
  pause(): void {
    this.paused = true;
    this.cancelTimers();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    if (this.step !== undefined && this.speed !== 0) this.immediate = setImmediate(this.fire);
    else {
      this.step = undefined;
      if (this.core.busy) this.start(this.clock());
    }
  }

  /** Stops the clock; nothing is generated any more. */
  stop(): void {
    this.stopped = true;
    this.cancelTimers();
  }

  /** Starts when nothing runs, or when everybody waits for a token interval: a newcomer need not. */
  private wake(): void {
    if (this.paused) return;
    if (this.step !== undefined) {
      if (!isIdle(this.step)) return;
      this.cancelTimers();
      this.step = undefined;
    }
    this.start(this.clock());
  }

  private start(now: number): void {
    if (this.stopped) return;
    this.at = now;
    if (this.speed === 0) {
      this.step = BUSY_STEP;
      this.immediate = setImmediate(this.runSlice);
    } else this.next();
  }

  private next(): void {
    const { core, speed } = this;
    this.step = core.beginStep(this.at * speed);
    this.endAt = this.at + this.step.durationMs / speed;
    const wait = this.endAt - this.clock();
    if (wait > 0) this.timer = setTimeout(this.fire, wait);
    else this.immediate = setImmediate(this.fire);
  }

  private readonly fire = (): void => {
    const left = this.endAt - this.clock();
    if (left > 0.5) {
      this.timer = setTimeout(this.fire, left);
      return;
    }
    this.core.endStep(this.endAt * this.speed);
    this.onStep?.();
    this.step = undefined;
    this.at = this.endAt;
    if (this.core.busy && !this.stopped && !this.paused) this.next();
  };

  private readonly runSlice = (): void => {
    const { core } = this;
    const start = this.clock();
    let now = start;
    this.step = BUSY_STEP;
    do {
      const step = core.beginStep(now);
      if (isIdle(step)) {
        // Whoever it waited for may have been aborted.
        if (!core.busy) break;
        this.step = step;
        this.timer = setTimeout(this.runSlice, step.durationMs);
        return;
      }
      core.endStep(now);
      this.onStep?.();
      now = this.clock();
    } while (core.busy && !this.paused && now - start < SLICE_MS);
    if (core.busy && !this.stopped && !this.paused) {
      this.step = BUSY_STEP;
      this.immediate = setImmediate(this.runSlice);
    } else this.step = undefined;
  };

  private cancelTimers(): void {
    clearTimeout(this.timer);
    clearImmediate(this.immediate);
  }
}

/** A step in which nobody gets anything. */
function isIdle(step: Step): boolean {
  return step.batch.length === 0 && step.prefillTokens === 0;
}

/** Stand-ins while instant mode has a slice scheduled. */
const BUSY_STEP: Step = { durationMs: 0, prefillTokens: 1, batch: [] };
