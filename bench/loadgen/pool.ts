import { Connection } from "./connection.ts";

/** Connections that are open and free, for one gateway. */
export class Pool {
  private readonly free: Connection[] = [];
  private readonly all: Connection[] = [];

  constructor(readonly url: URL) {}

  take(): Connection {
    const free = this.free.pop();
    if (free !== undefined) return free;
    const connection = new Connection(this.url.hostname, Number(this.url.port || 80));
    this.all.push(connection);
    return connection;
  }

  give(connection: Connection): void {
    this.free.push(connection);
  }

  close(): void {
    for (const connection of this.all) connection.close();
  }
}
