const FORM = /^(?:(grpcs?|https?):\/\/)?(\[[0-9a-f:.]+\]|[^\s/?#@:[\]]+)(?::(\d{1,5}))?\/?$/i;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

/** Where a worker is. */
export interface WorkerAddress {
  /** Undefined: it is to be tried what the worker speaks. */
  readonly scheme: "grpc" | "grpcs" | "http" | "https" | undefined;
  /** `host:port` in lower case: who has the same listens at the same place, whatever it speaks. */
  readonly place: string;
}

export const WORKER_ADDRESS_HELP = "such as grpc://10.0.0.5:50051, http://10.0.0.5:8000 or 10.0.0.5:8000";

/** Undefined for what is no `grpc(s)://host:port`, `http(s)://host[:port]` or `host:port`. */
export function parseWorkerAddress(url: string): WorkerAddress | undefined {
  const [, given, host = "", said] = FORM.exec(url.trim()) ?? [];
  const scheme = given?.toLowerCase() as WorkerAddress["scheme"];
  const port = said ?? DEFAULT_PORTS[scheme ?? ""];
  if (host === "" || port === undefined || Number(port) < 1 || Number(port) > 65535) return undefined;
  return { scheme, place: `${host.toLowerCase()}:${Number(port)}` };
}
