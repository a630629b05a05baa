import { ClientClosedError, type GatewayError, RequestTimeoutError, ShuttingDownError } from "../errors.ts";

/** One request's life, from accept to finish: its id and the one signal that everything done for it hangs on. */
export interface RequestScope {
  readonly id: string;
  readonly startedAt: number;
  /** Fires with a GatewayError as its reason: the client left, time is up, or the gateway stops. */
  readonly signal: AbortSignal;
  /** The request is over, well or badly. Exactly one call counts. */
  finish(): void;
}

/** A timer set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The requests that a serving thread is working on. */
export class RequestScopes {
  private readonly open = new Map<AbortController, () => void>();
  private readonly idle: (() => void)[] = [];

  constructor(private readonly timeoutSecs: number) {}

  get size(): number {
    return this.open.size;
  }

  begin(id: string, client: AbortSignal): RequestScope {
    const controller = new AbortController();
    const abort = (reason: GatewayError) => {
      if (!controller.signal.aborted) controller.abort(reason);
    };
    const onGone = () => abort(new ClientClosedError());
    const limitMs = Math.min(this.timeoutSecs * 1000, LONGEST_TIMER_MS);
    const timer = setTimeout(() => abort(new RequestTimeoutError(this.timeoutSecs)), limitMs);
    const finish = () => {
      if (!this.open.delete(controller)) return;
      clearTimeout(timer);
      client.removeEventListener("abort", onGone);
      if (this.open.size === 0) for (const resolve of this.idle.splice(0)) resolve();
    };
    this.open.set(controller, finish);
    client.addEventListener("abort", onGone);
    if (client.aborted) onGone();
    return { id, startedAt: performance.now(), signal: controller.signal, finish };
  }

  /** Resolves when no request is open. */
  whenIdle(): Promise<void> {
    return this.open.size === 0 ? Promise.resolve() : new Promise((resolve) => this.idle.push(resolve));
  }

  /** Ends every open request with ShuttingDownError. */
  abortAll(): void {
    for (const controller of this.open.keys())
      if (!controller.signal.aborted) controller.abort(new ShuttingDownError());
  }
}
