/** A name of DNS in the place of a worker's address: whoever is behind it is a worker. */
export type DnsName =
  | { readonly kind: "addresses"; readonly name: string; readonly port: number }
  /** Records of services, which name hosts and ports. */
  | { readonly kind: "services"; readonly name: string };

const FORM = /^dns(\+srv)?:\/\/\/?([a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9])?)\.?(?::(\d{1,5}))?\/?$/i;

export const isDnsUrl = (url: string): boolean => /^dns(\+srv)?:/i.test(url.trim());

/** Undefined for what is no `dns://name:port` or `dns+srv://_service._tcp.name`. */
export function parseDnsName(url: string): DnsName | undefined {
  const [, services, given, port] = FORM.exec(url.trim()) ?? [];
  if (given === undefined) return undefined;
  const name = given.toLowerCase();
  if (services !== undefined) return port === undefined ? { kind: "services", name } : undefined;
  if (Number(port) >= 1 && Number(port) <= 65535) return { kind: "addresses", name, port: Number(port) };
  return undefined;
}
