import type { Outcome } from "./answer.ts";
import type { Kind } from "./clients.ts";

/** How the answers of a soak ended. */
export class Tally {
  exact = 0;
  aborted = 0;
  /** Failed before their first token, and after it. */
  early = 0;
  late = 0;
  tokens = 0;
  /** Failures by code. */
  readonly codes = new Map<string, number>();
  /** What was wrong, all of it. */
  readonly wrong: string[] = [];

  readonly add = (kind: Kind, outcome: Outcome): void => {
    if (outcome.kind === "wrong") {
      this.wrong.push(`${kind}: ${outcome.why}`);
      return;
    }
    this.tokens += outcome.tokens;
    if (outcome.kind === "exact") this.exact++;
    else if (outcome.kind === "aborted") this.aborted++;
    else {
      if (outcome.tokens === 0) this.early++;
      else this.late++;
      this.codes.set(outcome.code, (this.codes.get(outcome.code) ?? 0) + 1);
    }
  };

  get failed(): number {
    return this.early + this.late;
  }

  get all(): number {
    return this.exact + this.aborted + this.failed + this.wrong.length;
  }
}
