import { createHash, timingSafeEqual } from "node:crypto";
import { AuthenticationError } from "../errors.ts";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** The key a request carries, in any of the ways that the vendors' clients send it. */
function presentedKey(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    const bearer = /^bearer +(.+)$/i.exec(authorization.trim());
    if (bearer) return bearer[1]!;
  }
  return headers.get("x-api-key") ?? headers.get("x-goog-api-key") ?? undefined;
}

/** A check that throws AuthenticationError unless the request carries the key. Without a key everybody may pass. */
export function keyCheck(apiKey: string | undefined): (headers: Headers) => void {
  if (apiKey === undefined || apiKey === "") return () => {};
  const wanted = digest(apiKey);
  return (headers) => {
    const key = presentedKey(headers);
    if (key === undefined)
      throw new AuthenticationError("You didn't provide an API key: send it as 'Authorization: Bearer KEY'");
    if (!timingSafeEqual(digest(key), wanted)) throw new AuthenticationError("Incorrect API key provided");
  };
}
