import type { Candidate, CandidateLoad, LoadFigures } from "../routing/policy.ts";
import type { FleetBoard } from "../threads/fleet-board.ts";

/** What a worker told of its queue counts for so long: afterwards our own count is the better one. */
const QUEUE_AGE_MS = 2000;
/** The rest changes slowly. */
const LOAD_AGE_MS = 60_000;

const AGES = { queue: QUEUE_AGE_MS, usage: LOAD_AGE_MS } as const;

/** What workers have to do, by the board, at one moment. */
export class BoardLoad implements CandidateLoad {
  /** Milliseconds since 1970. */
  now = 0;

  constructor(private readonly board: FleetBoard) {}

  read({ slot }: Candidate, into: LoadFigures): void {
    this.board.figures(slot, this.now, AGES, into);
  }

  running({ slot }: Candidate): number {
    return this.board.running(slot);
  }

  queuedTokens({ slot }: Candidate): number {
    const own = this.board.queuedTokens(slot);
    const told = this.board.waitingTokens(slot, this.now, QUEUE_AGE_MS) ?? 0;
    return Math.max(own, told);
  }

  kvUsage({ slot }: Candidate): number | undefined {
    return this.board.kvUsage(slot, this.now, LOAD_AGE_MS);
  }

  throughput({ slot }: Candidate): number | undefined {
    return this.board.throughput(slot, this.now, LOAD_AGE_MS);
  }

  lastUsed({ slot }: Candidate): number {
    return this.board.lastUsed(slot, this.now);
  }
}
