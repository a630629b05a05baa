/** The socket under a framing connection: TCP, or TLS that has agreed on HTTP/2. */
import type { Socket, TCPSocketConnectOptions } from "bun";
import type { ChannelOptions } from "./channel.ts";

export interface SocketEvents {
  /** Bytes may be written from now on. */
  onOpen(socket: FramingSocket): void;
  /** Bytes, valid during the call. */
  onData(bytes: Uint8Array): void;
  /** The socket takes more. */
  onDrain(): void;
  /** The socket is gone, or never came up. `code` names why, when the system says (ECONNREFUSED). Once or more. */
  onClose(code: string | undefined): void;
}

export interface FramingSocket {
  /** Writes what fits and returns how many bytes that were; below 0 when closed. */
  write(bytes: Uint8Array): number;
  /** Closes once what was written is sent. */
  end(): void;
  /** Closes at once. */
  destroy(): void;
}

/** The name of HTTP/2 as ALPN counts it: length, then text (RFC 7301). */
const ALPN_HTTP2 = "\x02h2";
const NO_HTTP2 = "ERR_HTTP2_NOT_SPOKEN";

/**
 * Connects to `target` (`host:port`, IPv6 in brackets). The socket may be closed before it is open. Throws for a target that is
 * no address, and for certificates that can't be read.
 */
export function openSocket(target: string, tls: ChannelOptions["tls"], events: SocketEvents): FramingSocket {
  const { hostname, port } = parseAddress(target);
  let socket: Socket | undefined;
  let over = false;
  const handle: FramingSocket = {
    write: (bytes) => (socket === undefined ? 0 : socket.write(bytes)),
    end() {
      over = true;
      socket?.end();
    },
    destroy() {
      over = true;
      socket?.terminate();
    },
  };
  const close = (code: string | undefined): void => {
    if (over) return;
    over = true;
    events.onClose(code);
  };
  const connectOptions: TCPSocketConnectOptions = {
    hostname,
    port,
    socket: {
      open(opened) {
        socket = opened;
        if (over) {
          opened.terminate();
          return;
        }
        opened.setNoDelay(true);
        if (tls === undefined) events.onOpen(handle);
      },
      handshake(secured, success, problem) {
        if (over) return;
        if (success && secured.alpnProtocol === "h2") events.onOpen(handle);
        else {
          secured.terminate();
          close(success ? NO_HTTP2 : codeOf(problem));
        }
      },
      data(_socket, bytes) {
        if (!over) events.onData(bytes);
      },
      drain() {
        if (!over) events.onDrain();
      },
      end: () => close(undefined),
      close: (_socket, error) => close(codeOf(error)),
      error: (_socket, error) => close(codeOf(error)),
      connectError: (_socket, error) => close(codeOf(error)),
    },
    ...(tls === undefined ? {} : { tls: { ...tls, rejectUnauthorized: true, ALPNProtocols: ALPN_HTTP2 } }),
  };
  // `connectError` tells the same, but not in every case.
  Bun.connect(connectOptions).catch((error: unknown) => close(codeOf(error)));
  return handle;
}

function parseAddress(target: string): { hostname: string; port: number } {
  const parts = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(target);
  if (parts === null) throw new TypeError("not host:port");
  return { hostname: parts[1] ?? parts[2] ?? "", port: Number(parts[3]) };
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
