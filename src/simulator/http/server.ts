import { type EngineServer, engineServer } from "../net/engine-server.ts";
import { listen } from "../net/listener.ts";
import type { HttpCall } from "./call.ts";
import { HttpConnection } from "./connection.ts";

/** Serves HTTP/1.1. Throws when the port is taken. */
export function serveHttp(options: { host: string; port: number; handle(call: HttpCall): void }): EngineServer {
  return engineServer(
    listen(options.host, options.port, (transport) => new HttpConnection(transport, options.handle)),
    (connection) => connection.leave(),
  );
}
