/** What clients say of where a request should go, and of what belongs together. */
import type { RouteHints } from "../../routing/ask.ts";

/** Longer values are no keys. */
const LONGEST = 512;

/** Headers that name an agent's session: Claude Code's, then Codex's in its releases. */
const SESSION_HEADERS = ["x-claude-code-session-id", "session-id", "session_id", "conversation_id"] as const;

/**
 * The hints in a request. A session is known by `prompt_cache_key` (OpenAI's APIs; Codex puts its session there), by Claude Code's
 * `metadata.user_id`, or by an agent's header. `body`: JSON that was not checked yet. Undefined: there are none.
 */
export function routeHints(headers: Headers | undefined, body: unknown): RouteHints | undefined {
  const routingKey = headerOf(headers, "x-smg-routing-key");
  const target = headers?.get("x-smg-target-worker")?.trim() || undefined; // of any length: who names a worker wants no other
  const sessionKey = sessionOfBody(body) ?? sessionOfHeaders(headers);
  if (routingKey === undefined && target === undefined && sessionKey === undefined) return undefined;
  return { routingKey, sessionKey, target };
}

function headerOf(headers: Headers | undefined, name: string): string | undefined {
  return keyOf(headers?.get(name));
}

function keyOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const key = value.trim();
  return key === "" || key.length > LONGEST ? undefined : key;
}

function sessionOfHeaders(headers: Headers | undefined): string | undefined {
  if (headers === undefined) return undefined;
  for (const name of SESSION_HEADERS) {
    const key = headerOf(headers, name);
    if (key !== undefined) return key;
  }
  return undefined;
}

function sessionOfBody(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { prompt_cache_key: cacheKey, metadata } = body as { prompt_cache_key?: unknown; metadata?: unknown };
  const key = keyOf(cacheKey);
  if (key !== undefined) return key;
  if (typeof metadata !== "object" || metadata === null) return undefined;
  const { user_id: user } = metadata as { user_id?: unknown };
  return typeof user === "string" && user.length <= LONGEST ? sessionOfUser(user) : undefined;
}

const SESSION_IN_USER = /_session_([\da-f-]{8,64})$/i;

/** Claude Code tells its session in the id of the user: as JSON with a `session_id`, or at its end in earlier releases. */
function sessionOfUser(user: string): string | undefined {
  if (!user.startsWith("{")) return SESSION_IN_USER.exec(user)?.[1];
  try {
    const { session_id: session } = JSON.parse(user) as { session_id?: unknown };
    return keyOf(session);
  } catch {
    return undefined;
  }
}
