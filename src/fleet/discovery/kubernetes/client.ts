/**
 * The API of a cluster, as far as pods go. Who the cluster is and how to sign in comes from `@kubernetes/client-node` (kubeconfig,
 * service account, exec plug-ins, OIDC). The requests are made here: under Bun, those of the package do not use the certificates.
 */
import type { RequestOptions } from "node:https";
import { workerUrl } from "../../../program.ts";
import type { PodJson } from "./pods.ts";

/** What the API refuses. Its message is the API's own. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";

  constructor(
    message: string,
    /** As of HTTP; 410: the version that was asked from is too old. */
    readonly status: number,
    readonly retryAfterMs = 0,
  ) {
    super(message);
  }
}

/** Format: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes */
export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: PodJson;
}

interface StatusJson {
  readonly message?: string;
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

interface ListJson {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly PodJson[];
}

export interface PodClient {
  /** Every pod of a selector, and the version from which changes follow. */
  list(selector: string, signal: AbortSignal): Promise<{ readonly version: string; readonly pods: readonly PodJson[] }>;
  /** Changes from a version on, for so long. Resolves when the stream ends in peace; half a line at its end counts for nothing. */
  watch(
    selector: string,
    version: string,
    forMs: number,
    onEvent: (event: WatchEvent) => void,
    signal: AbortSignal,
  ): Promise<void>;
}

export interface ClientSettings {
  /** Undefined: all of them. */
  readonly namespace: string | undefined;
  readonly requestMs: number;
  /** How long after its time a watch that does not end is cut. */
  readonly graceMs: number;
}

/** Pods of one answer. */
const PAGE = 500;
/** Objects of the API are under 1.5 MB, as its store has it. */
const MAX_LINE = 8 << 20;

export function podClient({ namespace, requestMs, graceMs }: ClientSettings): PodClient {
  const access = new Access();
  const path = namespace === undefined ? "/api/v1/pods" : `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;

  async function* pages(selector: string, signal: AbortSignal): AsyncGenerator<ListJson> {
    let next: string | undefined;
    do {
      const query = { labelSelector: selector, limit: String(PAGE), ...(next !== undefined && { continue: next }) };
      const page = await within(requestMs, signal, async (cut) => {
        const response = await access.get(path, query, cut);
        return (await response.json()) as ListJson;
      });
      yield page;
      next = page.metadata?.continue;
    } while (next !== undefined && next !== "");
  }

  return {
    async list(selector, signal) {
      const pods: PodJson[] = [];
      let version = "";
      for await (const { metadata, items } of pages(selector, signal)) {
        version = metadata?.resourceVersion ?? "";
        for (const pod of items ?? []) pods.push(pod);
      }
      return { version, pods };
    },
    watch: (selector, version, forMs, onEvent, signal) =>
      within(forMs + graceMs, signal, async (cut) => {
        const query = {
          watch: "true",
          labelSelector: selector,
          resourceVersion: version,
          allowWatchBookmarks: "true",
          timeoutSeconds: String(Math.max(1, Math.ceil(forMs / 1000))),
        };
        const { body } = await access.get(path, query, cut);
        if (body === null) return;
        for await (const line of linesOf(body)) {
          const event = JSON.parse(line) as WatchEvent;
          if (event.type === "ERROR") throw refusal(event.object as StatusJson, 500);
          onEvent(event);
        }
      }),
  };
}

/** Where the API is and how to sign in: read when it is first needed, and again once it refuses the credentials. */
class Access {
  private config: Promise<KubeConfig> | undefined;

  /** Rejects with KubernetesError for any answer but 200. */
  async get(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    this.config ??= loadConfig();
    const { server, proxy, headers, tls } = await this.config.then(credentials).catch((error: unknown) => {
      this.config = undefined;
      throw error;
    });
    const response = await fetch(`${server}${path}?${new URLSearchParams(query)}`, {
      headers: { ...headers, accept: "application/json" },
      tls,
      signal,
      redirect: "error", // nobody else gets the token
      ...(proxy !== undefined && { proxy }),
    });
    if (response.status === 200) return response;
    if (response.status === 401) this.config = undefined;
    const status = (await response.json().catch(() => ({}))) as StatusJson;
    const retryAfter = Number(response.headers.get("retry-after") ?? status.details?.retryAfterSeconds ?? 0);
    throw refusal(status, response.status, (retryAfter || 0) * 1000);
  }
}

function refusal({ message, code }: StatusJson, status: number, retryAfterMs = 0): KubernetesError {
  const told = code ?? status;
  return new KubernetesError(message?.slice(0, 500) ?? `the API answers with status ${told}`, told, retryAfterMs);
}

/** The package is large, and only who asks for pods needs it. */
async function loadConfig() {
  const entry = workerUrl("fleet/discovery/kubernetes/kube-config").href;
  const { KubeConfig } = (await import(entry)) as typeof import("./kube-config.ts");
  const config = new KubeConfig();
  config.loadFromDefault();
  // what the package takes when there is nothing
  if (config.getCurrentContext() === "loaded-context")
    throw new Error("there is neither a kubeconfig nor a service account to reach Kubernetes with");
  return config;
}

type KubeConfig = Awaited<ReturnType<typeof loadConfig>>;

/** Files of certificates and tokens are read anew where they may have changed. */
async function credentials(config: KubeConfig) {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error("the kubeconfig's current context has no cluster");
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const { ca, cert, key, passphrase, rejectUnauthorized, servername, auth } = options;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = String(value).trim();
  if (typeof auth === "string") headers["Authorization"] = `Basic ${Buffer.from(auth).toString("base64")}`;
  const given = { ca, cert, key, passphrase, rejectUnauthorized, serverName: servername };
  const tls = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));
  return { server: cluster.server.replace(/\/+$/, ""), proxy: cluster.proxyUrl, headers, tls };
}

/** Runs with a signal that fires with the given one, and after so long. */
async function within<T>(ms: number, signal: AbortSignal, run: (cut: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const cut = () => own.abort(signal.reason);
  const timer = setTimeout(() => own.abort(new Error(`Kubernetes did not answer within ${ms} ms`)), ms);
  signal.addEventListener("abort", cut);
  try {
    signal.throwIfAborted();
    return await run(own.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cut);
    own.abort(); // a body that was left half read holds its connection
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let held = 0;
  for await (const chunk of body) {
    const [first = "", ...rest] = decoder.decode(chunk, { stream: true }).split("\n");
    parts.push(first);
    held += first.length;
    if (held > MAX_LINE) throw new Error("Kubernetes sends a line without an end");
    for (const next of rest) {
      const line = parts.join("");
      parts = [next];
      held = next.length;
      if (line !== "") yield line;
    }
  }
}
