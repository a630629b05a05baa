/** Headers of answers that tell where a request was sent (`--routing-headers`). */
import type { RouteTrace } from "../fleet/lease.ts";

/** Names of the headers, as clients in browsers may read them. */
export const ROUTING_HEADERS = {
  worker: "x-collie-worker",
  predicted: "x-collie-cached-tokens-predicted",
  cached: "x-collie-cached-tokens",
} as const;

/** Of a stream it is not known yet, when its headers leave, how many tokens were cached. */
export function addTrace(headers: Headers, { worker, predictedTokens, cachedTokens }: RouteTrace): void {
  if (worker === undefined) return;
  headers.set(ROUTING_HEADERS.worker, worker);
  if (predictedTokens !== undefined) headers.set(ROUTING_HEADERS.predicted, String(predictedTokens));
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (cachedTokens !== undefined && !isStream) headers.set(ROUTING_HEADERS.cached, String(cachedTokens));
}
