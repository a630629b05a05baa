/** Request headers of the framing channel (gRPC over HTTP/2, "Requests"). */
import { encodeHeaders } from "../http2/hpack.ts";
import { grpcTimeout } from "./grpc-metadata.ts";

/** Builds the header blocks of one channel's calls; what all calls of a path share is encoded once. */
export class RequestHeaders {
  private readonly byPath = new Map<string, Uint8Array>();

  constructor(
    private readonly authority: string,
    private readonly secure: boolean,
  ) {}

  /** A whole block. `timeoutMs` is what is left until the deadline, Infinity without one. */
  encode(path: string, metadata: Readonly<Record<string, string>>, timeoutMs: number): Uint8Array {
    let common = this.byPath.get(path);
    if (common === undefined) {
      common = encodeHeaders([
        [":method", "POST"],
        [":scheme", this.secure ? "https" : "http"],
        [":path", path],
        [":authority", this.authority],
        ["content-type", "application/grpc"],
        ["te", "trailers"],
        ["user-agent", "collie"],
      ]);
      this.byPath.set(path, common);
    }
    const own = Object.entries(metadata);
    if (timeoutMs !== Number.POSITIVE_INFINITY) own.push(["grpc-timeout", grpcTimeout(timeoutMs)]);
    return own.length === 0 ? common : Buffer.concat([common, encodeHeaders(own)]);
  }
}
