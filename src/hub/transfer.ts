/** One GET of the hub: redirects, time limits, size limits, tries. Nothing here knows what is asked for. */
import { version } from "../../package.json" with { type: "json" };
import { HubError, messageOf } from "./hub-error.ts";

/** The part of the global `fetch` that is used; Bun's own honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface TransferOptions {
  readonly fetch: Fetch;
  /** The hub. Its origin alone gets the token. */
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** Pauses before the second try, the third ...; their number gives the number of tries. Milliseconds. */
  readonly pausesMs: readonly number[];
}

export interface Limits {
  /** Longest wait for the headers, and longest silence after them. Milliseconds. */
  readonly silenceMs: number;
  /** Longest time for all of it. Milliseconds. */
  readonly totalMs: number;
  readonly bytes: number;
}

export interface Received {
  readonly status: number;
  /** Of every answer on the way, redirects first. */
  readonly headers: readonly Headers[];
  readonly body: Uint8Array;
}

const MOST_REDIRECTS = 10;
/** A hub that wants a longer pause than this is not waited for. */
const LONGEST_PAUSE_MS = 30_000;
const MOST_ERROR_BODY = 64 << 10;

/** A failure that another try may mend. */
export class TransientError extends Error {
  constructor(
    message: string,
    readonly afterMs?: number,
  ) {
    super(message);
  }
}

/**
 * Gets a URL of the hub and hands what came to `accept`, which may throw `TransientError` for another try. Throws `HubError`: of kind
 * "unreachable" after the last try, else whatever `accept` found wrong.
 */
export async function transfer<T>(
  url: string,
  limits: Limits,
  options: TransferOptions,
  accept: (received: Received) => T,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return accept(await get(url, limits, options));
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!(error instanceof TransientError)) throw error;
      const pause = Math.max(options.pausesMs[attempt] ?? 0, error.afterMs ?? 0);
      if (attempt >= options.pausesMs.length || pause > LONGEST_PAUSE_MS) {
        const tries = attempt > 0 ? ` (${attempt + 1} tries)` : "";
        throw new HubError("unreachable", `${error.message}${tries}`);
      }
      await sleep(pause, options.signal);
    }
  }
}

async function get(address: string, limits: Limits, options: TransferOptions): Promise<Received> {
  const host = new URL(options.endpoint).host;
  const timer = new AbortController();
  const cut = (why: string) => timer.abort(new TransientError(why));
  const total = setTimeout(() => cut(`${host} took over ${limits.totalMs / 1000} s`), limits.totalMs);
  let silence: ReturnType<typeof setTimeout> | undefined;
  const alive = () => {
    clearTimeout(silence);
    silence = setTimeout(() => cut(`${host} was silent for ${limits.silenceMs / 1000} s`), limits.silenceMs);
  };
  const signal = options.signal ? AbortSignal.any([options.signal, timer.signal]) : timer.signal;
  try {
    const headers: Headers[] = [];
    for (let url = new URL(address); ; ) {
      alive();
      const response = await options.fetch(url.href, { headers: headersFor(url, options), redirect: "manual", signal });
      headers.push(response.headers);
      const next = redirectOf(response, url);
      if (next === undefined) return { status: response.status, headers, body: await read(response, limits, alive) };
      await response.body?.cancel();
      if (headers.length > MOST_REDIRECTS) throw new HubError("broken", `${host} redirects in circles`);
      url = next;
    }
  } catch (error) {
    if (timer.signal.aborted) throw timer.signal.reason;
    if (error instanceof HubError || error instanceof TransientError) throw error;
    throw new TransientError(`${host} can't be reached: ${messageOf(error)}`);
  } finally {
    clearTimeout(total);
    clearTimeout(silence);
  }
}

function headersFor(url: URL, { endpoint, token }: TransferOptions): Record<string, string> {
  // Compressed, a file would have another size, and the hub another etag for it.
  const headers = { "User-Agent": `collie/${version}`, "Accept-Encoding": "identity" };
  return token !== undefined && url.origin === new URL(endpoint).origin
    ? { ...headers, Authorization: `Bearer ${token}` }
    : headers;
}

function redirectOf(response: Response, from: URL): URL | undefined {
  const location = [301, 302, 303, 307, 308].includes(response.status) ? response.headers.get("Location") : null;
  if (location === null) return undefined;
  const to = URL.parse(location, from);
  const safe = to?.protocol === "https:" || (to?.protocol === "http:" && from.protocol === "http:");
  if (!to || !safe) throw new HubError("broken", `${from.host} redirects to a place that is not safe to follow`);
  return to;
}

async function read(response: Response, limits: Limits, alive: () => void): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    alive();
    length += piece.length;
    if (!response.ok && length > MOST_ERROR_BODY) break;
    if (length > limits.bytes) throw new HubError("broken", `the answer has over ${limits.bytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", over);
      resolve();
    }, ms);
    signal?.addEventListener("abort", over, { once: true });
  });
}
