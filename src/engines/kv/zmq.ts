/** A ZeroMQ socket with one peer that it connects to. */
import type { Socket } from "bun";
import type { ZmqAddress } from "./zmq-address.ts";
import { ZmtpError, ZmtpPeer, type ZmtpSocketType, zmtpMessage } from "./zmtp.ts";

export interface ZmqEvents {
  onReady(): void;
  onMessage(frames: readonly Uint8Array[]): void;
  /** The connection is over, or never came up. Once, and not after `close`. */
  onClose(why: string): void;
}

export interface ZmqSocket {
  send(frames: readonly Uint8Array[]): void;
  pause(): void;
  resume(): void;
  close(): void;
}

const CONNECT_MS = 5000;
/** A peer that is silent for long is asked by TCP whether it is there: a publisher may have nothing to say for hours. */
const KEEPALIVE_MS = 30_000;

/** Connects at once; says nothing before the caller has its socket. */
export function connectZmq(type: ZmtpSocketType, { host, port }: ZmqAddress, events: ZmqEvents): ZmqSocket {
  let socket: Socket | undefined;
  let isOver = false;
  let isPaused = false;
  let unsent: Uint8Array[] = [];

  const timer = setTimeout(() => end("no connection in time"), CONNECT_MS);
  function end(why: string): void {
    if (isOver) return;
    shut();
    events.onClose(why);
  }
  function shut(): void {
    isOver = true;
    clearTimeout(timer);
    unsent = [];
    socket?.terminate();
  }
  /** Little is ever sent, but the system may take less than that. */
  function flush(): void {
    while (unsent.length > 0 && socket !== undefined) {
      const bytes = unsent[0]!;
      const count = socket.write(bytes);
      if (count < bytes.length) {
        unsent[0] = bytes.subarray(Math.max(0, count));
        return;
      }
      unsent.shift();
    }
  }

  const peer = new ZmtpPeer(type, {
    send(bytes) {
      unsent.push(bytes);
      flush();
    },
    onReady() {
      clearTimeout(timer);
      if (!isOver) events.onReady();
    },
    onMessage(frames) {
      if (!isOver) events.onMessage(frames);
    },
  });

  Bun.connect({
    hostname: host,
    port,
    socket: {
      open(opened) {
        socket = opened;
        if (isOver) {
          opened.terminate();
          return;
        }
        opened.setKeepAlive(true, KEEPALIVE_MS);
        peer.greet();
        if (isPaused) opened.pause();
      },
      data(_socket, bytes) {
        if (isOver) return;
        try {
          peer.take(bytes);
        } catch (error) {
          if (!(error instanceof ZmtpError)) throw error;
          end(error.message);
        }
      },
      drain: flush,
      end: () => end("the connection was closed"),
      close: () => end("the connection was closed"),
      error: (_socket, error) => end(error.message),
      connectError: (_socket, error) => end(error.message),
    },
  }).catch((error: unknown) => end(error instanceof Error ? error.message : String(error)));

  return {
    send(frames) {
      if (isOver) return;
      unsent.push(zmtpMessage(frames));
      flush();
    },
    pause() {
      isPaused = true;
      socket?.pause();
    },
    resume() {
      isPaused = false;
      socket?.resume();
    },
    close: shut,
  };
}
