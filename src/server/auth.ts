import { createHash, timingSafeEqual } from "node:crypto";
import type { ErrorFamily } from "../apis/errors.ts";
import { AuthenticationError } from "../errors.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** The key a request carries, in any of the ways that the vendors' clients send it; Google's may put it into the URL. */
function presentedKey(headers: Headers, url: string): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    const bearer = /^bearer +(.+)$/i.exec(authorization.trim());
    if (bearer) return bearer[1]!;
  }
  return headers.get("x-api-key") ?? headers.get("x-goog-api-key") ?? keyOfQuery(url);
}

function keyOfQuery(url: string): string | undefined {
  const at = url.indexOf("?");
  return at < 0 ? undefined : (new URLSearchParams(url.slice(at)).get("key") ?? undefined);
}

/** How the clients of an API send a key. */
const HINTS: Readonly<Record<ErrorFamily, string>> = {
  openai: "'Authorization: Bearer KEY'",
  anthropic: "'x-api-key: KEY' or 'Authorization: Bearer KEY'",
  google: "'x-goog-api-key: KEY'",
  workers: "'Authorization: Bearer KEY'",
};

/**
 * A check that throws AuthenticationError, in the words of an API, unless the request carries the key. Without a key everybody may pass.
 */
export function keyCheck(apiKey: string | undefined): (headers: Headers, url?: string, family?: ErrorFamily) => void {
  if (apiKey === undefined || apiKey === "") return () => {};
  const wanted = digest(apiKey);
  return (headers, url = "", family = "openai") => {
    const key = presentedKey(headers, url);
    if (key === undefined) throw new AuthenticationError(`You didn't provide an API key: send it as ${HINTS[family]}`);
    if (!timingSafeEqual(digest(key), wanted)) throw new AuthenticationError("Incorrect API key provided");
  };
}
