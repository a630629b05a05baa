import type { GatewayError } from "../errors.ts";

/** Work that goes on without its client. */
export interface BackgroundRun {
  /** The id of the response, interaction or batch that it makes. */
  readonly id: string;
  /** Resolves when its end is stored; never rejects. */
  readonly done: Promise<void>;
  /** Ends it; the first reason counts. */
  abort(reason: GatewayError): void;
}

/**
 * Those of this thread, while they last. Only a way to reach them faster: a run that is not here may be in another thread or gateway, and
 * the history says how it is.
 */
export class RunRegistry {
  private readonly runs = new Map<string, BackgroundRun>();

  add(run: BackgroundRun): void {
    this.runs.set(run.id, run);
    void run.done.finally(() => {
      if (this.runs.get(run.id) === run) this.runs.delete(run.id);
    });
  }

  get(id: string): BackgroundRun | undefined {
    return this.runs.get(id);
  }
}
