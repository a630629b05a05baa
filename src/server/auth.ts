import { createHash, timingSafeEqual } from "node:crypto";
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

/** A check that throws AuthenticationError unless the request carries the key. Without a key everybody may pass. */
export function keyCheck(apiKey: string | undefined): (headers: Headers, url?: string) => void {
  if (apiKey === undefined || apiKey === "") return () => {};
  const wanted = digest(apiKey);
  return (headers, url = "") => {
    const key = presentedKey(headers, url);
    if (key === undefined)
      throw new AuthenticationError("You didn't provide an API key: send it as 'Authorization: Bearer KEY'");
    if (!timingSafeEqual(digest(key), wanted)) throw new AuthenticationError("Incorrect API key provided");
  };
}
