import { GrpcStatus } from "../../engines/grpc-error.ts";
import { type EngineServer, engineServer } from "../net/engine-server.ts";
import { listen } from "../net/listener.ts";
import { Connection, type ConnectionHandler } from "./connection.ts";
import { EMPTY, type ServerCall } from "./stream.ts";

/**
 * A method: called with each message of the request, `message` being valid only during the call (unary and server-streaming
 * methods see one). It answers over `call` whenever it likes.
 */
export type GrpcMethod = (call: ServerCall, message: Uint8Array) => void;

/** Methods by path, `/package.Service/Method`. */
export type GrpcMethods = ReadonlyMap<string, GrpcMethod>;

const MAX_MESSAGE_BYTES = 256 << 20;

/** Serves gRPC over plain HTTP/2. Throws when the port is taken. */
export function serveGrpc(options: { host: string; port: number; methods: GrpcMethods }): EngineServer {
  const handler: ConnectionHandler = {
    onHeaders(call) {
      if (!(call.headers.get("content-type") ?? "").startsWith("application/grpc"))
        return call.end(GrpcStatus.INTERNAL, "content-type is not application/grpc");
      if (!options.methods.has(call.path)) call.end(GrpcStatus.UNIMPLEMENTED, "Method not found!");
    },
    onBody(call) {
      deliver(call, options.methods.get(call.path));
    },
    onIdle(connection) {
      connection.end();
    },
  };
  return engineServer(
    listen(options.host, options.port, (transport) => new Connection(transport, handler)),
    (connection) => connection.goAway(),
  );
}

/** Hands every complete message of the body to the method. */
function deliver(call: ServerCall, method: GrpcMethod | undefined): void {
  if (!method) {
    call.bodyLength = 0;
    return;
  }
  let at = 0;
  const { body, bodyLength } = call;
  while (call.open && bodyLength - at >= 5) {
    const length = new DataView(body.buffer, body.byteOffset + at + 1, 4).getUint32(0);
    if (body[at] !== 0) {
      call.end(GrpcStatus.UNIMPLEMENTED, "compressed messages are not supported");
      return;
    }
    if (length > MAX_MESSAGE_BYTES) {
      call.end(GrpcStatus.RESOURCE_EXHAUSTED, "message too large");
      return;
    }
    if (bodyLength - at - 5 < length) break;
    at += 5 + length;
    call.messages++;
    method(call, body.subarray(at - length, at));
  }
  if (at > 0) {
    if (at === bodyLength) call.body = EMPTY;
    else call.body.copyWithin(0, at, bodyLength);
    call.bodyLength = bodyLength - at;
  }
  if (!call.halfClosed || !call.open) return;
  if (call.bodyLength > 0 || call.messages === 0) call.end(GrpcStatus.INTERNAL, "the request ended without a message");
  else call.onHalfClose?.();
}
