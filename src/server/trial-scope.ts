import type { GatewayError } from "../errors.ts";
import type { RequestScope } from "./request-scope.ts";

/** Part of a request's life that may fail without ending it: then the request is tried in another way. */
export interface TrialScope extends RequestScope {
  /** What was tried is the answer: from now on its end is that of the request. */
  keep(): void;
}

export function trialScope(whole: RequestScope): TrialScope {
  const own = new AbortController();
  const onAbort = (): void => own.abort(whole.signal.reason);
  let isKept = false;
  let isFinished = false;
  whole.signal.addEventListener("abort", onAbort);
  if (whole.signal.aborted) onAbort();
  return {
    id: whole.id,
    tenant: whole.tenant,
    startedAt: whole.startedAt,
    signal: own.signal,
    meter: whole.meter,
    route: whole.route,
    abort(reason: GatewayError) {
      if (isKept) whole.abort(reason);
      else own.abort(reason);
    },
    limit: (seconds) => whole.limit(seconds),
    finish() {
      isFinished = true;
      whole.signal.removeEventListener("abort", onAbort);
      if (isKept) whole.finish();
    },
    keep() {
      isKept = true;
      if (isFinished) whole.finish();
    },
  };
}
