import type { EngineServer } from "../grpc/server.ts";
import { closeAtOnce, closeGently, listen } from "../net/listener.ts";
import type { HttpCall } from "./call.ts";
import { HttpConnection } from "./connection.ts";

/** Serves HTTP/1.1. Throws when the port is taken. */
export function serveHttp(options: { host: string; port: number; handle(call: HttpCall): void }): EngineServer {
  const listener = listen(options.host, options.port, (transport) => new HttpConnection(transport, options.handle));
  let stopping: Promise<void> | undefined;
  return {
    port: listener.port,
    connections: listener.peers,
    freeze: (frozen) => listener.freeze(frozen),
    kill: () => closeAtOnce(listener, (connection) => connection.destroy()),
    stop(graceMs) {
      stopping ??= closeGently(listener, graceMs, {
        leave: (connection) => connection.leave(),
        cut: (connection) => connection.destroy(),
      });
      return stopping;
    },
  };
}
