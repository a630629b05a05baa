/** A channel whose code is loaded, and whose connection is made, with the first call. */
import type { CallOptions, Channel, StreamCall, StreamHandler } from "./channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

/** `open` loads and creates the channel; it is called once, and again after it failed. */
export function lazyChannel(open: () => Promise<Channel>): Channel {
  let opening: Promise<Channel> | undefined;
  let opened: Channel | undefined;
  let closed = false;

  function channel(): Promise<Channel> {
    opening ??= open().then(
      (made) => {
        if (closed) made.close();
        opened = made;
        return made;
      },
      () => {
        opening = undefined;
        throw new GrpcError(GrpcStatus.UNAVAILABLE, "the channel can't be loaded");
      },
    );
    return opening;
  }

  async function unary(path: string, request: Uint8Array, options?: CallOptions): Promise<Uint8Array> {
    return (await channel()).unary(path, request, options);
  }

  function serverStream(path: string, request: Uint8Array, handler: StreamHandler, options?: CallOptions): StreamCall {
    if (opened !== undefined) return opened.serverStream(path, request, handler, options);
    let call: StreamCall | undefined;
    let ended = false;
    let paused = false;
    channel().then(
      (made) => {
        if (ended) return;
        call = made.serverStream(path, request, handler, options);
        if (paused) call.pause();
      },
      (error: GrpcError) => {
        if (!ended) handler.onEnd(error);
      },
    );
    return {
      cancel() {
        if (call !== undefined) call.cancel();
        else if (!ended) {
          ended = true;
          handler.onEnd(new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
        }
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
  }

  function close(): void {
    closed = true;
    opened?.close();
  }

  return { unary, serverStream, close };
}
