/**
 * gRPC over HTTP/2 frames of our own: the channel of the token path. Connections are opened on demand and reopened by
 * the next call; there is no backoff here, because who calls (health checks, routing) decides when to try again.
 */
import type { CallOptions, Channel, ChannelOptions, StreamCall, StreamHandler } from "./channel.ts";
import { FramingCall } from "./framing-call.ts";
import { FramingConnection } from "./framing-connection.ts";
import { RequestHeaders } from "./framing-request.ts";
import { openSocket } from "./framing-socket.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { metadataToHeaders } from "./grpc-metadata.ts";

const ENDED_CALL: StreamCall = { cancel() {}, pause() {}, resume() {} };

/** A channel to `target` (`host:port`, IPv6 in brackets). Connects with the first call, by `open`. */
export function createFramingChannel(target: string, options: ChannelOptions, open = openSocket): Channel {
  const connections: FramingConnection[] = [];
  const requestHeaders = new RequestHeaders(target, options.tls !== undefined);
  const { connections: wanted = 1 } = options;
  let keepaliveMs = options.keepaliveMs;
  let closed = false;

  /** The connection with the fewest calls; a new one as long as there are to be more, or where the peer takes no more calls on these. */
  function connectionWithRoom(): FramingConnection {
    let best: FramingConnection | undefined;
    let usable = 0;
    for (const connection of connections) {
      if (!connection.isUsable) continue;
      usable++;
      if (connection.hasRoom && (best === undefined || connection.calls < best.calls)) best = connection;
    }
    if (best !== undefined && (best.calls === 0 || usable >= wanted)) return best;
    const connection = new FramingConnection(target, requestHeaders, options, keepaliveMs, open, {
      onGone(wasUp) {
        const at = connections.indexOf(connection);
        if (at >= 0) connections.splice(at, 1);
        if (wasUp && !closed) options.onLost?.();
      },
      onTooManyPings() {
        // As the gRPC specification of keepalive asks: half as often from now on.
        keepaliveMs = Math.max(keepaliveMs, connection.keepaliveMs * 2);
      },
      onOverflow: send,
    });
    connections.push(connection);
    return connection;
  }

  function send(call: FramingCall): void {
    try {
      connectionWithRoom().send(call);
    } catch {
      // A target that is no address, or certificates that can't be read.
      call.failLater(new GrpcError(GrpcStatus.UNAVAILABLE, "the connection can't be set up"));
    }
  }

  function endLater(handler: StreamHandler, error: GrpcError): StreamCall {
    queueMicrotask(() => handler.onEnd(error));
    return ENDED_CALL;
  }

  function serverStream(
    path: string,
    request: Uint8Array,
    handler: StreamHandler,
    callOptions: CallOptions = {},
  ): StreamCall {
    if (closed) return endLater(handler, new GrpcError(GrpcStatus.UNAVAILABLE, "the channel is closed"));
    if (callOptions.signal?.aborted)
      return endLater(handler, new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
    let headers: Record<string, string> = {};
    if (callOptions.metadata !== undefined) {
      try {
        headers = metadataToHeaders(callOptions.metadata);
      } catch (error) {
        return endLater(handler, error as GrpcError);
      }
    }
    const call = new FramingCall({
      path,
      request,
      handler,
      options: callOptions,
      headers,
      maxReceiveBytes: options.maxReceiveBytes,
    });
    send(call);
    return call;
  }

  function unary(path: string, request: Uint8Array, callOptions?: CallOptions): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      let reply: Uint8Array | undefined;
      let count = 0;
      serverStream(
        path,
        request,
        {
          onMessage(bytes, start, end) {
            count++;
            reply = bytes.slice(start, end);
          },
          onEnd(error) {
            if (error !== undefined) reject(error);
            else if (reply === undefined || count !== 1)
              reject(new GrpcError(GrpcStatus.INTERNAL, `${count} messages in the reply of a unary call`));
            else resolve(reply);
          },
        },
        callOptions,
      );
    });
  }

  function close(): void {
    closed = true;
    for (const connection of [...connections]) connection.closeAll("the channel is closed");
  }

  return { unary, serverStream, close };
}
