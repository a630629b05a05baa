/** What is being done with workers, for those who asked for it: SMG's job status. */
import { QueueFullError } from "../errors.ts";
import type { Clock } from "./clock.ts";

/** SMG's words. */
export type JobType = "AddWorker" | "UpdateWorker" | "RemoveWorker";

/** On the wire; a job that is done has none. */
export interface JobStatus {
  readonly job_type: JobType;
  readonly worker_url: string;
  readonly status: "pending" | "processing" | "failed";
  /** Why it is not done yet, or never will be. */
  readonly message?: string;
  /** Unix time in seconds of the last change. */
  readonly timestamp: number;
}

/** Most jobs that may be open at once. */
const MOST = 1000;
/** How long it is told that a job has failed. */
const KEPT_MS = 300_000;

/** One job a worker, the newest. */
export class Jobs {
  private readonly byWorker = new Map<string, JobStatus>();

  constructor(private readonly clock: Clock) {}

  /** Throws QueueFullError if there are too many. */
  admit(): void {
    if (this.byWorker.size < MOST) return;
    this.sweep();
    if (this.byWorker.size >= MOST)
      throw new QueueFullError(`${MOST} workers are being added, changed or removed already`, { retryAfterSecs: 5 });
  }

  begin(worker: string, type: JobType, url: string): void {
    this.set(worker, { job_type: type, worker_url: url, status: "pending" });
  }

  /** It goes on, though not without trouble: `message`. */
  tell(worker: string, message: string): void {
    const job = this.byWorker.get(worker);
    if (job !== undefined) this.set(worker, { ...job, status: "processing", message });
  }

  fail(worker: string, message: string): void {
    const job = this.byWorker.get(worker);
    if (job !== undefined) this.set(worker, { ...job, status: "failed", message });
  }

  done(worker: string): void {
    this.byWorker.delete(worker);
  }

  of(worker: string): JobStatus | undefined {
    this.sweep();
    return this.byWorker.get(worker);
  }

  get size(): number {
    return this.byWorker.size;
  }

  private set(worker: string, job: Omit<JobStatus, "timestamp">): void {
    this.byWorker.set(worker, { ...job, timestamp: Math.floor(this.clock.now() / 1000) });
  }

  private sweep(): void {
    const before = (this.clock.now() - KEPT_MS) / 1000;
    for (const [worker, { status, timestamp }] of this.byWorker)
      if (status === "failed" && timestamp < before) this.byWorker.delete(worker);
  }
}
