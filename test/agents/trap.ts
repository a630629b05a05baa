/** What an agent does to reach anybody but the gateway is caught here: nothing leaves the machine, and each try is noted. */
import type { Socket } from "bun";

const DNS_PORT = 53;
const PLAIN_PORTS = [80, 443];
const NO_SUCH_NAME = 0x8183;

/** A way to start a program in a network of its own, in which every address is this machine; undefined where the system has none. */
export function fenceCommand(): readonly string[] | undefined {
  const setUp = "ip link set lo up && ip route add local default dev lo";
  const command = ["unshare", "--map-root-user", "--net", "sh", "-c", `${setUp} && exec "$@"`, "sh"];
  if (process.platform !== "linux" || Bun.which("unshare") === null || Bun.which("ip") === null) return undefined;
  return Bun.spawnSync([...command, "true"]).exitCode === 0 ? command : undefined;
}

export interface Trap {
  /** Whether names and addresses are watched, too, and not only the proxy. */
  readonly fenced: boolean;
  /** Address of the proxy. */
  readonly proxy: string;
  /** What was tried so far, e.g. `name statsig.example` or `CONNECT api.example:443 HTTP/1.1`. */
  readonly tries: string[];
  /** Environment that sends programs which honour proxies here, for all but this machine. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): void;
}

/** The first line of what a connection brings: a request, or nothing that can be read. */
function note(tries: string[], port: number) {
  return {
    data(socket: Socket, bytes: Uint8Array) {
      const [line = ""] = new TextDecoder().decode(bytes).split("\r\n");
      tries.push(/^[A-Z]+ \S+ HTTP/.test(line) ? line : `a connection to port ${port}`);
      socket.end();
    },
  };
}

/** The name that a DNS question asks for. */
function questionName(message: Uint8Array): string {
  const labels: string[] = [];
  for (let at = 12; (message[at] ?? 0) > 0; at += message[at]! + 1)
    labels.push(new TextDecoder().decode(message.subarray(at + 1, at + 1 + message[at]!)));
  return labels.join(".");
}

/**
 * Opens the trap: a proxy that connects to nobody and, `fenced` (this process was started by the fenceCommand), a DNS server that knows
 * no name and servers on the ports of HTTP, at every address there is.
 */
export async function openTrap(fenced: boolean): Promise<Trap> {
  const tries: string[] = [];
  const proxy = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: note(tries, 0) });
  const open: { stop(): void }[] = [proxy];
  if (fenced) {
    for (const port of PLAIN_PORTS) open.push(Bun.listen({ hostname: "0.0.0.0", port, socket: note(tries, port) }));
    const names = await Bun.udpSocket({
      hostname: "0.0.0.0",
      port: DNS_PORT,
      socket: {
        data(socket, message, port, address) {
          tries.push(`name ${questionName(message)}`);
          const answer = Buffer.alloc(message.length);
          message.copy(answer);
          answer.writeUInt16BE(NO_SUCH_NAME, 2);
          answer.fill(0, 6, 12);
          socket.send(answer, port, address);
        },
      },
    });
    open.push({ stop: () => names.close() });
  }
  const url = `http://127.0.0.1:${proxy.port}`;
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  return {
    fenced,
    proxy: url,
    tries,
    environment: {
      ...Object.fromEntries(names.map((name) => [name, url])),
      NO_PROXY: "127.0.0.1,localhost",
      no_proxy: "127.0.0.1,localhost",
    },
    stop() {
      for (const one of open) one.stop();
    },
  };
}

/** Walks into the trap in each way there is. Throws when it does not notice. */
export async function tryTrap({ fenced, proxy, tries }: Trap): Promise<void> {
  const fails = (request: Promise<unknown>) =>
    request.then(
      () => Promise.reject(new Error("somebody answered")),
      () => undefined,
    );
  await fails(fetch("http://collie.test/proxy", { proxy }));
  if (fenced) {
    await fails(fetch("http://collie.test/name"));
    await fails(fetch("http://192.0.2.1/address"));
    await fails(fetch("https://192.0.2.1/address"));
  }
  const noted = [
    /^GET http:\/\/collie.test\/proxy /,
    ...(fenced ? [/^name collie.test$/, /^GET \/address /, /^a connection to port 443$/] : []),
  ];
  for (const note of noted) if (!tries.some((each) => note.test(each))) throw new Error(`no ${note} in ${tries}`);
}
