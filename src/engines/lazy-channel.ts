import type { CallOptions, Channel, StreamCall, StreamHandler } from "./channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

/** A channel whose code is loaded, and whose connection is made, at the first call. */
export function lazyChannel(open: () => Promise<Channel>): Channel {
  let opening: Promise<Channel> | undefined;
  let closed = false;
  const channel = () => {
    opening ??= open();
    return opening;
  };
  return {
    async unary(path: string, request: Uint8Array, options?: CallOptions): Promise<Uint8Array> {
      if (closed) throw new GrpcError(GrpcStatus.UNAVAILABLE, "the channel is closed");
      return (await channel()).unary(path, request, options);
    },
    serverStream(path: string, request: Uint8Array, handler: StreamHandler, options?: CallOptions): StreamCall {
      let call: StreamCall | undefined;
      let cancelled = false;
      let paused = false;
      channel().then(
        (opened) => {
          if (cancelled) return;
          call = opened.serverStream(path, request, handler, options);
          if (paused) call.pause();
        },
        (error: unknown) => {
          if (!cancelled) handler.onEnd(new GrpcError(GrpcStatus.UNAVAILABLE, (error as Error).message));
        },
      );
      return {
        cancel() {
          if (call !== undefined) return call.cancel();
          if (cancelled) return;
          cancelled = true;
          handler.onEnd(new GrpcError(GrpcStatus.CANCELLED, "cancelled"));
        },
        pause() {
          paused = true;
          call?.pause();
        },
        resume() {
          paused = false;
          call?.resume();
        },
      };
    },
    close() {
      closed = true;
      opening?.then(
        (opened) => opened.close(),
        () => {},
      );
    },
  };
}
