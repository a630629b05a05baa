import { ClientClosedError, type GatewayError, RequestTimeoutError, ShuttingDownError } from "../errors.ts";
import type { RouteOfRequest } from "../fleet/lease.ts";
import type { RequestMeter } from "./request-metrics.ts";

/** One request's life, from accept to finish: its id and the one signal that everything done for it hangs on. */
export interface RequestScope {
  readonly id: string;
  /** Whose it is: what it stores belongs to this one. */
  readonly tenant: string;
  readonly startedAt: number;
  /** Fires with a GatewayError as its reason: the client left, time is up, or the gateway stops. */
  readonly signal: AbortSignal;
  /** Counts it, once it is known what it asks for. */
  meter?: RequestMeter | undefined;
  /** What it brings along for those who choose its worker, once its body is read. */
  route?: RouteOfRequest | undefined;
  /** Ends the work for the request; the first reason counts. */
  abort(reason: GatewayError): void;
  /** It may take so long in all, whatever is set for all requests; 0 = as long as it likes. */
  limit(seconds: number): void;
  /** The request is over, well or badly. Exactly one call counts. */
  finish(): void;
}

/** Everybody, where callers are not told apart. */
export const DEFAULT_TENANT = "default";

/** A timer set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const inTimer = (ms: number): number => Math.min(Math.max(ms, 0), LONGEST_TIMER_MS);

class OpenRequest implements RequestScope {
  readonly startedAt = performance.now();
  private readonly controller = new AbortController();
  meter: RequestMeter | undefined;
  route: RouteOfRequest | undefined;
  /** It has a limit of its own. */
  isLimited = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly onGone = () => this.abort(new ClientClosedError());

  constructor(
    readonly id: string,
    readonly tenant: string,
    private readonly client: AbortSignal,
    private readonly onFinish: (request: OpenRequest) => void,
  ) {
    client.addEventListener("abort", this.onGone);
    if (client.aborted) this.onGone();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  abort(reason: GatewayError): void {
    if (!this.signal.aborted) this.controller.abort(reason);
  }

  limit(seconds: number): void {
    this.isLimited = true;
    clearTimeout(this.timer);
    if (seconds === 0) return;
    const left = this.startedAt + seconds * 1000 - performance.now();
    this.timer = setTimeout(() => this.abort(new RequestTimeoutError(seconds)), inTimer(left));
  }

  finish(): void {
    clearTimeout(this.timer);
    this.client.removeEventListener("abort", this.onGone);
    this.onFinish(this);
  }
}

/** The requests that a serving thread is working on. */
export class RequestScopes {
  /** In the order of their beginning, which is the order in which their time runs out. */
  private readonly open = new Set<OpenRequest>();
  private readonly idle: (() => void)[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Requests so far. */
  begun = 0;
  /** Called when a request begins while no other is open. */
  onBusy: () => void = () => {};

  /** `timeoutSecs`: 0 = no limit. `onFinished` is called once for each request. */
  constructor(
    private readonly timeoutSecs: number,
    private readonly onFinished: (scope: RequestScope) => void = () => {},
  ) {}

  /** Requests that are open. */
  get size(): number {
    return this.open.size;
  }

  begin(id: string, client: AbortSignal, tenant = DEFAULT_TENANT): RequestScope {
    const request = new OpenRequest(id, tenant, client, this.onFinish);
    this.begun++;
    this.open.add(request);
    if (this.open.size === 1) this.onBusy();
    if (this.timeoutSecs > 0 && this.timer === undefined) this.watch(request);
    return request;
  }

  private readonly onFinish = (request: OpenRequest): void => {
    if (!this.open.delete(request)) return;
    request.meter?.ended();
    this.onFinished(request);
    if (this.open.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const resolve of this.idle.splice(0)) resolve();
  };

  /** One timer for all: it waits for the request that began first, and then for the first one that is left. */
  private watch(first: OpenRequest): void {
    const left = first.startedAt + this.timeoutSecs * 1000 - performance.now();
    this.timer = setTimeout(() => this.expire(), inTimer(left));
  }

  private expire(): void {
    const limit = performance.now() - this.timeoutSecs * 1000;
    for (const request of this.open) {
      if (request.signal.aborted || request.isLimited) continue;
      if (request.startedAt > limit) {
        this.watch(request);
        return;
      }
      request.abort(new RequestTimeoutError(this.timeoutSecs));
    }
    this.timer = undefined;
  }

  /** Resolves when no request is open. */
  whenIdle(): Promise<void> {
    return this.open.size === 0 ? Promise.resolve() : new Promise((resolve) => this.idle.push(resolve));
  }

  /** Ends every open request with ShuttingDownError. */
  abortAll(): void {
    for (const request of this.open) request.abort(new ShuttingDownError());
  }
}
