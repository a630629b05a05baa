/** The API of a cluster, as far as pods go: lists in pages, watches that replay what happened since a version, and all that goes wrong. */
import { writeFileSync } from "node:fs";
import { ca, serverCert, serverKey } from "./certificates.ts";

export interface TestPod {
  readonly name: string;
  readonly uid: string;
  readonly namespace?: string;
  readonly ip?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly isReady?: boolean;
  readonly phase?: string;
  readonly ends?: boolean;
}

interface Change {
  readonly version: number;
  readonly before: TestPod | undefined;
  readonly after: TestPod | undefined;
}

interface OpenWatch {
  readonly matches: (pod: TestPod | undefined) => boolean;
  readonly stream: ReadableStreamDefaultController<string>;
}

export interface SeenRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly authorization: string | null;
}

/** Next requests of a kind are refused so. */
export interface Refusal {
  readonly of: "list" | "watch";
  readonly status: number;
  readonly message: string;
  readonly times: number;
  readonly retryAfterSecs?: number;
}

export class KubeApi {
  readonly requests: SeenRequest[] = [];
  /** What it lets in. */
  token = "first-token";
  /** Watches are accepted, and nothing is ever sent on them. */
  isSilent = false;
  /** A version that is too old is told of as an event, not as a status. */
  goneAsEvent = false;
  /** Watches end when their time is over, unless told otherwise. */
  endsWatches = true;
  readonly refusals: Refusal[] = [];
  private readonly pods = new Map<string, TestPod>();
  private readonly changes: Change[] = [];
  private readonly watches = new Set<OpenWatch>();
  private version = 100;
  /** Changes before are forgotten. */
  private oldest = 100;
  private server: Bun.Server<undefined>;

  constructor() {
    this.server = this.listen(0);
  }

  get url(): string {
    return `https://127.0.0.1:${this.server.port}`;
  }

  get openWatches(): number {
    return this.watches.size;
  }

  count(of: "list" | "watch"): number {
    return this.requests.filter(({ query }) => ("watch" in query ? "watch" : "list") === of).length;
  }

  put(pod: TestPod): void {
    this.change(this.pods.get(pod.uid), pod);
    this.pods.set(pod.uid, pod);
  }

  remove(uid: string): void {
    const before = this.pods.get(uid);
    this.pods.delete(uid);
    this.change(before, undefined);
  }

  /** A change that no watch is told of. */
  removeUnseen(uid: string): void {
    this.pods.delete(uid);
    this.version++;
  }

  /** Forgets what has changed: older versions are gone. */
  compact(): void {
    this.oldest = ++this.version;
    this.changes.length = 0;
  }

  bookmark(): void {
    const object = { kind: "Pod", metadata: { resourceVersion: String(++this.version) } };
    for (const { stream } of this.watches) stream.enqueue(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  /** Sends something to all watches, as it is. */
  send(text: string): void {
    for (const { stream } of this.watches) stream.enqueue(text);
  }

  /** All watches end. */
  endWatches(): void {
    for (const { stream } of this.watches) stream.close();
    this.watches.clear();
  }

  /** Connections break; nobody listens. */
  async down(): Promise<() => void> {
    const { port } = this.server;
    await this.server.stop(true);
    this.watches.clear();
    return () => {
      this.server = this.listen(port ?? 0);
    };
  }

  /** A kubeconfig with a token of its own, or from a file. */
  writeKubeconfig(path: string, token?: { readonly file: string }): void {
    const user =
      token === undefined
        ? { token: this.token }
        : { "auth-provider": { name: "tokenFile", config: { tokenFile: token.file } } };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "test",
          cluster: { server: this.url, "certificate-authority-data": Buffer.from(ca).toString("base64") },
        },
      ],
      users: [{ name: "test", user }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
      "current-context": "test",
    };
    writeFileSync(path, JSON.stringify(config));
  }

  async stop(): Promise<void> {
    await this.server.stop(true);
  }

  private listen(port: number): Bun.Server<undefined> {
    return Bun.serve({
      hostname: "127.0.0.1",
      port,
      idleTimeout: 0,
      tls: { cert: serverCert, key: serverKey },
      fetch: (request) => this.answer(request),
    });
  }

  private answer(request: Request): Response {
    const { pathname, searchParams } = new URL(request.url);
    const query = Object.fromEntries(searchParams);
    const authorization = request.headers.get("authorization");
    this.requests.push({ path: pathname, query, authorization });
    if (authorization !== `Bearer ${this.token}`) return failure(401, "Unauthorized");
    const [, namespace] = /^\/api\/v1\/(?:namespaces\/([^/]+)\/)?pods$/.exec(pathname) ?? [];
    if (!pathname.endsWith("/pods")) return failure(404, "the server could not find the requested resource");
    const kind = query["watch"] === "true" ? "watch" : "list";
    const at = this.refusals.findIndex(({ of, times }) => of === kind && times > 0);
    const refusal = this.refusals[at];
    if (refusal !== undefined) {
      this.refusals[at] = { ...refusal, times: refusal.times - 1 };
      return failure(refusal.status, refusal.message, refusal.retryAfterSecs);
    }
    const wanted = (query["labelSelector"] ?? "").split(",").map((pair) => pair.split("="));
    const matches = (pod: TestPod | undefined) =>
      pod !== undefined &&
      (namespace === undefined || (pod.namespace ?? "default") === namespace) &&
      wanted.every(([label = "", value]) => pod.labels?.[label] === value);
    return kind === "watch" ? this.watch(query, matches, request.signal) : this.list(query, matches);
  }

  private list(query: Readonly<Record<string, string>>, matches: (pod: TestPod) => boolean): Response {
    const all = [...this.pods.values()].filter(matches);
    const from = Number(query["continue"] ?? 0);
    const to = from + Number(query["limit"] ?? 500);
    return Response.json({
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: String(this.version), ...(to < all.length && { continue: String(to) }) },
      items: all.slice(from, to).map((pod) => podJson(pod, this.version)),
    });
  }

  private watch(query: Readonly<Record<string, string>>, matches: OpenWatch["matches"], signal: AbortSignal): Response {
    const since = Number(query["resourceVersion"]);
    const isGone = since < this.oldest;
    const gone = `too old resource version: ${since} (${this.oldest})`;
    if (isGone && !this.goneAsEvent) return failure(410, gone);
    let own: OpenWatch | undefined;
    const forget = () => {
      if (own !== undefined) this.watches.delete(own);
    };
    const body = new ReadableStream<string>({
      start: (stream) => {
        if (isGone) {
          stream.enqueue(`${JSON.stringify({ type: "ERROR", object: statusJson(410, gone) })}\n`);
          stream.close();
          return;
        }
        own = { matches, stream };
        this.watches.add(own);
        if (this.isSilent) return;
        for (const change of this.changes) if (change.version > since) tell(own, change);
        if (!this.endsWatches) return;
        const timer = setTimeout(() => {
          if (own === undefined || !this.watches.delete(own)) return;
          stream.close();
        }, Number(query["timeoutSeconds"]) * 1000);
        signal.addEventListener("abort", () => clearTimeout(timer));
      },
      cancel: forget,
    });
    signal.addEventListener("abort", forget);
    return new Response(body, { headers: { "content-type": "application/json" } });
  }

  private change(before: TestPod | undefined, after: TestPod | undefined): void {
    const change = { version: ++this.version, before, after };
    this.changes.push(change);
    if (!this.isSilent) for (const watch of this.watches) tell(watch, change);
  }
}

/** A pod that a selector finds no more is deleted for who watches by it. */
function tell({ matches, stream }: OpenWatch, { version, before, after }: Change): void {
  const [was, is] = [matches(before), matches(after)];
  if (!was && !is) return;
  const type = !was ? "ADDED" : is ? "MODIFIED" : "DELETED";
  const pod = after ?? before;
  if (pod !== undefined) stream.enqueue(`${JSON.stringify({ type, object: podJson(pod, version) })}\n`);
}

function podJson(pod: TestPod, version: number) {
  return {
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      name: pod.name,
      namespace: pod.namespace ?? "default",
      uid: pod.uid,
      resourceVersion: String(version),
      labels: pod.labels ?? {},
      annotations: pod.annotations ?? {},
      ...(pod.ends === true && { deletionTimestamp: "2026-12-01T00:00:00Z" }),
    },
    spec: { containers: [{ name: "engine" }] },
    status: {
      phase: pod.phase ?? "Running",
      conditions: [
        { type: "PodScheduled", status: "True" },
        { type: "Ready", status: (pod.isReady ?? true) ? "True" : "False" },
      ],
      ...(pod.ip !== undefined && { podIP: pod.ip, podIPs: [{ ip: pod.ip }] }),
    },
  };
}

function statusJson(code: number, message: string, retryAfterSeconds?: number) {
  return { kind: "Status", apiVersion: "v1", status: "Failure", message, code, details: { retryAfterSeconds } };
}

const failure = (status: number, message: string, retryAfterSecs?: number) =>
  Response.json(statusJson(status, message, retryAfterSecs), {
    status,
    headers: retryAfterSecs === undefined ? {} : { "retry-after": String(retryAfterSecs) },
  });
