/** Metadata of gRPC calls as HTTP/2 headers: what may be sent, and how values of `-bin` keys travel. */
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

export type Metadata = Readonly<Record<string, string | Uint8Array>>;

/** Python servers take 8 KB by default and may drop the whole connection above it; the rest is room for our own headers. */
export const MAX_METADATA_BYTES = 7 * 1024;

/** Every HTTP/2 header counts 32 bytes more than its text (RFC 9113, section 6.5.2). */
const HEADER_OVERHEAD = 32;
const KEY = /^[0-9a-z_.-]+$/;
const VALUE = /^[\x20-\x7e]*$/;
const RESERVED = new Set(["te", "content-type", "user-agent", "connection", "host"]);

/**
 * Header values of a call's metadata. Throws GrpcError INVALID_ARGUMENT for keys or values that gRPC does not allow, and for
 * more than 7 KB in all: such a call must fail alone, before it is sent.
 */
export function metadataToHeaders(metadata: Metadata): Record<string, string> {
  const headers: Record<string, string> = {};
  let total = 0;
  for (const key in metadata) {
    const value = metadata[key];
    if (value === undefined) continue;
    if (!KEY.test(key) || key.startsWith("grpc-") || RESERVED.has(key))
      throw new GrpcError(GrpcStatus.INVALID_ARGUMENT, `metadata key '${key.slice(0, 64)}' is not allowed`);
    const isText = typeof value === "string";
    if (isText === key.endsWith("-bin"))
      throw new GrpcError(GrpcStatus.INVALID_ARGUMENT, `metadata '${key}' must be ${isText ? "bytes" : "text"}`);
    const text = isText
      ? value
      : Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64").replace(/=+$/, "");
    if (isText && !VALUE.test(text))
      throw new GrpcError(GrpcStatus.INVALID_ARGUMENT, `metadata '${key}' holds characters other than printable ASCII`);
    total += key.length + text.length + HEADER_OVERHEAD;
    headers[key] = text;
  }
  if (total > MAX_METADATA_BYTES)
    throw new GrpcError(
      GrpcStatus.INVALID_ARGUMENT,
      `metadata of ${total} bytes is over the limit of ${MAX_METADATA_BYTES}`,
    );
  return headers;
}

/** Among gRPC's own, but for callers: when to try again (gRFC A6). */
const PUSHBACK = "grpc-retry-pushback-ms";

/** Whether a header or trailer is metadata, and not the protocol's own. */
export function isMetadata(key: string): boolean {
  return !key.startsWith(":") && (!key.startsWith("grpc-") || key === PUSHBACK) && key !== "content-type";
}

/** Metadata of headers or trailers, without pseudo headers and gRPC's own. */
export function headersToMetadata(headers: Readonly<Record<string, unknown>>): Record<string, string | Uint8Array> {
  const metadata: Record<string, string | Uint8Array> = {};
  for (const key in headers) {
    if (!isMetadata(key)) continue;
    const value = headers[key];
    if (value === undefined) continue;
    const text = Array.isArray(value) ? value.join(", ") : String(value);
    metadata[key] = key.endsWith("-bin") ? Uint8Array.from(Buffer.from(text, "base64")) : text;
  }
  return metadata;
}

/** Text of a percent-encoded `grpc-message`; broken encodings stay as they are. */
export function decodeGrpcMessage(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Value of the `grpc-timeout` header: at most eight digits and a unit (m = milliseconds, S = seconds). */
export function grpcTimeout(ms: number): string {
  const whole = Math.max(1, Math.ceil(ms));
  return whole <= 99_999_999 ? `${whole}m` : `${Math.min(99_999_999, Math.ceil(whole / 1000))}S`;
}
