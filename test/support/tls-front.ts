/** TLS in front of a plain server on this machine, as a side-car has it. */
import { connect, type Socket } from "node:net";
import { createServer } from "node:tls";
import { serverCert, serverKey } from "./certificates.ts";

export interface TlsFront {
  readonly port: number;
  close(): Promise<void>;
}

/** Passes on what comes to the plain server at `port`. `protocol`: what it agrees on (ALPN). `clientCa`: it wants a certificate of this CA. */
export async function tlsFront(port: number, protocol: "h2" | "http/1.1", clientCa?: string): Promise<TlsFront> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer(
    {
      cert: serverCert,
      key: serverKey,
      ALPNProtocols: [protocol],
      ...(clientCa !== undefined && { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
    },
    (secure) => {
      const plain = connect(port, "127.0.0.1");
      keep(secure);
      keep(plain);
      secure.pipe(plain).pipe(secure);
      secure.on("close", () => plain.destroy());
      plain.on("close", () => secure.destroy());
    },
  );
  server.on("tlsClientError", () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, resolve);
  await promise;
  return {
    port: (server.address() as { port: number }).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      const closed = new Promise<void>((done) => server.close(() => done()));
      await closed;
    },
  };
}
