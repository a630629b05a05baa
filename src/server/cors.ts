import { ROUTING_HEADERS } from "./routing-headers.ts";

/** Headers that let browsers of the allowed origins call the gateway. None named means every origin. */
export function corsHeaders(origin: string | null, allowed: readonly string[]): Record<string, string> {
  if (origin === null) return {};
  if (allowed.length === 0) return { "access-control-allow-origin": "*", "access-control-expose-headers": EXPOSED };
  if (!allowed.includes(origin)) return { vary: "origin" };
  return { "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED, vary: "origin" };
}

const EXPOSED = [
  ...["x-request-id", "request-id", "retry-after", "x-should-retry"],
  ...Object.values(ROUTING_HEADERS),
].join(", ");

/** Answer to a preflight request. */
export function preflight(request: Request, allowed: readonly string[]): Response {
  const headers = corsHeaders(request.headers.get("origin"), allowed);
  if (headers["access-control-allow-origin"] !== undefined) {
    headers["access-control-allow-methods"] = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    headers["access-control-allow-headers"] = request.headers.get("access-control-request-headers") ?? "*";
    headers["access-control-max-age"] = "3600";
  }
  return new Response(null, { status: 204, headers });
}
