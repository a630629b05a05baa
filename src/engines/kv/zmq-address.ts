export interface ZmqAddress {
  readonly host: string;
  readonly port: number;
}

/** `tcp://host:port`, IPv6 in brackets; the host is `own` for `*` and other names for all. Undefined for another form. */
export function parseZmqAddress(endpoint: string, own: string): ZmqAddress | undefined {
  const parts = /^tcp:\/\/(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(endpoint);
  if (parts === null) return undefined;
  const host = parts[1] ?? parts[2] ?? "";
  return { host: EVERYWHERE.has(host) ? own : host, port: Number(parts[3]) };
}

const EVERYWHERE: ReadonlySet<string> = new Set(["", "*", "0.0.0.0", "::"]);
