/** A request of HTTP/1.1 (RFC 9112) as it was read. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** By lower-case name; of repeated ones the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** Bytes that are no request. */
export class HttpSyntaxError extends Error {
  override readonly name = "HttpSyntaxError";
}

const MAX_HEAD_BYTES = 65_536;
const NOTHING = Buffer.alloc(0);

interface Head {
  readonly method: string;
  readonly target: string;
  readonly headers: ReadonlyMap<string, string>;
  /** Bytes of the body; undefined: it comes in chunks. */
  readonly length: number | undefined;
}

/** Cuts a connection's bytes into requests. Bodies are held whole. */
export class RequestReader {
  private pieces: Uint8Array[] = [];
  private size = 0;
  private head: Head | undefined;
  /** Bytes needed before looking again makes sense. */
  private needed = 1;

  constructor(private readonly onContinue: () => void) {}

  push(chunk: Uint8Array): void {
    this.pieces.push(chunk.slice());
    this.size += chunk.length;
  }

  /** The next complete request, or undefined. Throws HttpSyntaxError. */
  next(): HttpRequest | undefined {
    if (this.size < this.needed) return undefined;
    let input = this.joined();
    if (this.head === undefined) {
      const end = input.indexOf("\r\n\r\n");
      if (end < 0) {
        if (input.length > MAX_HEAD_BYTES) throw new HttpSyntaxError("head too large");
        this.keep(input, input.length + 1);
        return undefined;
      }
      this.head = parseHead(input.toString("latin1", 0, end));
      input = input.subarray(end + 4);
      if (this.head.headers.get("expect") === "100-continue") this.onContinue();
    }
    const { length } = this.head;
    const body = length === undefined ? dechunk(input) : input.length < length ? undefined : cut(input, length);
    if (body === undefined) {
      this.keep(input, length ?? input.length + 1);
      return undefined;
    }
    const { method, target, headers } = this.head;
    this.head = undefined;
    this.keep(body.rest, 1);
    return { method, target, headers, body: body.bytes };
  }

  private joined(): Buffer {
    const input =
      this.pieces.length === 1
        ? Buffer.from(this.pieces[0]!.buffer, this.pieces[0]!.byteOffset, this.size)
        : Buffer.concat(this.pieces);
    this.pieces = [];
    return input;
  }

  private keep(rest: Buffer, needed: number): void {
    this.pieces = rest.length > 0 ? [rest] : [];
    this.size = rest.length;
    this.needed = needed;
  }
}

function parseHead(text: string): Head {
  const [first = "", ...lines] = text.split("\r\n");
  const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(first) ?? [];
  if (method === undefined || target === undefined) throw new HttpSyntaxError("not a request line");
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon <= 0) throw new HttpSyntaxError("not a header line");
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  if (headers.get("transfer-encoding")?.toLowerCase() === "chunked")
    return { method, target, headers, length: undefined };
  const length = Number(headers.get("content-length") ?? "0");
  if (!Number.isSafeInteger(length) || length < 0) throw new HttpSyntaxError("content-length");
  return { method, target, headers, length };
}

interface Cut {
  readonly bytes: Buffer;
  readonly rest: Buffer;
}

function cut(input: Buffer, length: number): Cut {
  return { bytes: length === 0 ? NOTHING : input.subarray(0, length), rest: input.subarray(length) };
}

/** Joins a chunked body; undefined while its end is missing. */
function dechunk(input: Buffer): Cut | undefined {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = input.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(input.toString("latin1", at, line), 16);
    if (Number.isNaN(size)) throw new HttpSyntaxError("chunk size");
    at = line + 2;
    if (size === 0) break;
    if (input.length < at + size + 2) return undefined;
    parts.push(input.subarray(at, at + size));
    at += size + 2;
  }
  // Trailer lines up to an empty one.
  for (;;) {
    const line = input.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const isLast = line === at;
    at = line + 2;
    if (isLast) return { bytes: Buffer.concat(parts), rest: input.subarray(at) };
  }
}
