/** The socket under a connection. */
export interface Transport {
  /** Writes what fits and returns how many bytes that were; below 0 when closed. */
  write(bytes: Uint8Array): number;
  /** Sends FIN after what was written. */
  end(): void;
  /** Closes at once (RST where the system allows). */
  destroy(): void;
}

/** A connection above its socket. */
export interface Peer {
  /** Bytes from the socket, valid during the call. */
  receive(chunk: Uint8Array): void;
  /** The socket can take more. */
  drained(): void;
  /** The socket is gone. */
  lost(): void;
}

export interface Listener<P extends Peer> {
  readonly port: number;
  /** Connections that are open now. */
  readonly peers: ReadonlySet<P>;
  /** Called when the last connection is gone. */
  onEmpty: (() => void) | undefined;
  /**
   * A frozen listener is like one in a stopped process: the system still accepts connections and takes bytes, but nothing is
   * read, answered or written until it is thawed.
   */
  freeze(frozen: boolean): void;
  /** Accepts nothing more; open connections stay. */
  close(): void;
}

interface Socket {
  write(bytes: Uint8Array): number;
  end(): void;
  terminate(): void;
}

/** One socket, which keeps what comes and goes while its listener is frozen. */
class Link<P extends Peer> implements Transport {
  peer!: P;
  private held: Uint8Array[] = [];
  private frozen: boolean;
  private endLater = false;
  private isLost = false;

  constructor(
    private readonly socket: Socket,
    frozen: boolean,
  ) {
    this.frozen = frozen;
  }

  write(bytes: Uint8Array): number {
    return this.frozen ? 0 : this.socket.write(bytes);
  }

  end(): void {
    if (this.frozen) this.endLater = true;
    else this.socket.end();
  }

  destroy(): void {
    this.socket.terminate();
  }

  receive(chunk: Uint8Array): void {
    if (this.frozen) this.held.push(chunk.slice());
    else this.peer.receive(chunk);
  }

  drained(): void {
    if (!this.frozen) this.peer.drained();
  }

  lost(): void {
    if (this.frozen) this.isLost = true;
    else this.peer.lost();
  }

  freeze(frozen: boolean): void {
    this.frozen = frozen;
    if (frozen) return;
    for (const chunk of this.held.splice(0)) this.peer.receive(chunk);
    if (this.isLost) this.peer.lost();
    else {
      this.peer.drained();
      if (this.endLater) this.socket.end();
    }
  }
}

/** Listens on TCP; `open` makes the connection above a new socket. Throws when the port is taken. */
export function listen<P extends Peer>(host: string, port: number, open: (transport: Transport) => P): Listener<P> {
  const links = new Set<Link<P>>();
  const peers = new Set<P>();
  let isFrozen = false;
  const server = Bun.listen<Link<P>>({
    hostname: host,
    port,
    socket: {
      open(socket) {
        socket.setNoDelay(true);
        const link = new Link<P>(socket, isFrozen);
        link.peer = open(link);
        socket.data = link;
        links.add(link);
        peers.add(link.peer);
      },
      data: (socket, chunk) => socket.data.receive(chunk),
      drain: (socket) => socket.data.drained(),
      close(socket) {
        const link = socket.data;
        link.lost();
        if (!isFrozen) links.delete(link);
        peers.delete(link.peer);
        if (peers.size === 0) listener.onEmpty?.();
      },
      error() {
        // `close` follows and ends what ran.
      },
    },
  });
  const listener: Listener<P> = {
    port: server.port,
    peers,
    onEmpty: undefined,
    freeze(frozen) {
      if (frozen === isFrozen) return;
      isFrozen = frozen;
      for (const link of [...links]) {
        link.freeze(frozen);
        if (!peers.has(link.peer)) links.delete(link);
      }
    },
    close: () => server.stop(false),
  };
  return listener;
}

/** Closes a listener with all its connections, frozen or not. */
export function closeAtOnce<P extends Peer>(listener: Listener<P>, cut: (peer: P) => void): void {
  listener.close();
  for (const peer of [...listener.peers]) cut(peer);
}

/** Closes a listener: its connections are told to leave, and cut when they are still there after `graceMs`. */
export async function closeGently<P extends Peer>(
  listener: Listener<P>,
  graceMs: number,
  { leave, cut }: { leave(peer: P): void; cut(peer: P): void },
): Promise<void> {
  listener.close();
  listener.freeze(false);
  if (listener.peers.size === 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  listener.onEmpty = resolve;
  const timer = setTimeout(() => {
    for (const peer of [...listener.peers]) cut(peer);
    resolve();
  }, graceMs);
  for (const peer of [...listener.peers]) leave(peer);
  await promise;
  clearTimeout(timer);
}
