import { closeAtOnce, closeGently, type Listener, type Peer } from "./listener.ts";

/** A server of the simulated engine, for one protocol. */
export interface EngineServer {
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: ReadonlySet<unknown>;
  /** Reads, answers and writes nothing while frozen, as the server of a stopped process. */
  freeze(frozen: boolean): void;
  /** Goes as a killed process does: its connections break, without a goodbye. */
  kill(): void;
  /** Refuses new calls, lets the open ones finish for `graceMs` at most, then closes. Safe to call twice. */
  stop(graceMs: number): Promise<void>;
}

/** The server of a listener. `leave` tells a connection that nothing more is taken on it. */
export function engineServer<P extends Peer & { destroy(): void }>(
  listener: Listener<P>,
  leave: (connection: P) => void,
): EngineServer {
  const cut = (connection: P) => connection.destroy();
  let stopping: Promise<void> | undefined;
  return {
    port: listener.port,
    connections: listener.peers,
    freeze: (frozen) => listener.freeze(frozen),
    kill: () => closeAtOnce(listener, cut),
    stop(graceMs) {
      stopping ??= closeGently(listener, graceMs, { leave, cut });
      return stopping;
    },
  };
}
