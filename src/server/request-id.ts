const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const pool = new Uint8Array(4096);
let at = pool.length;

/** 24 random letters and digits; one call for entropy serves many ids. */
export function randomId(): string {
  let id = "";
  while (id.length < 24) {
    if (at === pool.length) {
      crypto.getRandomValues(pool);
      at = 0;
    }
    const value = pool[at++]! & 63;
    if (value < ALPHABET.length) id += ALPHABET[value];
  }
  return id;
}

/** The id a client gave its request in one of the named headers, if it is harmless to repeat in headers and logs. */
export function clientRequestId(headers: Headers, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers.get(name);
    if (value !== null && /^[\x21-\x7e]{1,128}$/.test(value)) return value;
  }
  return undefined;
}

/** The id a client gave its request, else a new one. */
export function requestId(request: Request, settings: { readonly requestIdHeaders: readonly string[] }): string {
  return clientRequestId(request.headers, settings.requestIdHeaders) ?? `req-${randomId()}`;
}
