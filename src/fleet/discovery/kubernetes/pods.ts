/** Pods, as the API of Kubernetes tells of them, and the workers in them. */
import type { DiscoveredWorker } from "../../worker-source.ts";
import type { Role } from "./roles.ts";

/** Where a pod says which model it serves. */
export type ModelIdFrom =
  | { readonly kind: "namespace" }
  | { readonly kind: "label" | "annotation"; readonly key: string };

/** What is kept of a pod. */
export interface Pod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Undefined while it serves nobody: it is not ready, ends, or has no address. */
  readonly ip: string | undefined;
  /** The annotation `smg.ai/worker-ports`. */
  readonly ports: string | undefined;
  /** The annotation `sglang.ai/bootstrap-port`. */
  readonly bootstrapPorts: string | undefined;
  readonly modelId: string | undefined;
}

export interface PodSettings {
  /** Of pods that do not name theirs. */
  readonly port: number;
  readonly scheme: "grpc" | "http" | undefined;
}

/** Members of a pod that are read. Format: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ */
export interface PodJson {
  readonly metadata?: {
    readonly uid?: string;
    readonly name?: string;
    readonly namespace?: string;
    readonly resourceVersion?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type?: string; readonly status?: string }[];
  };
}

/** A value of the setting: `namespace`, `label:KEY` or `annotation:KEY`. */
export function modelIdFrom(value: string | undefined): ModelIdFrom | undefined {
  const [, kind, key] = /^(label|annotation):(.+)$/.exec(value ?? "") ?? [];
  if ((kind === "label" || kind === "annotation") && key !== undefined) return { kind, key };
  return value === "namespace" ? { kind: "namespace" } : undefined;
}

/** Undefined for what is no pod. */
export function readPod({ metadata = {}, status = {} }: PodJson, idFrom: ModelIdFrom | undefined): Pod | undefined {
  const { uid, name, namespace = "", annotations = {}, labels = {} } = metadata;
  if (uid === undefined || name === undefined) return undefined;
  const isReady = status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
  const serves = isReady && status.phase === "Running" && metadata.deletionTimestamp === undefined;
  const modelIds = {
    namespace: () => namespace,
    label: (key: string) => labels[key],
    annotation: (key: string) => annotations[key],
  };
  return {
    uid,
    name,
    namespace,
    ip: serves ? status.podIP : undefined,
    ports: annotations["smg.ai/worker-ports"],
    bootstrapPorts: annotations["sglang.ai/bootstrap-port"],
    modelId:
      idFrom === undefined
        ? undefined
        : modelIds[idFrom.kind](idFrom.kind === "namespace" ? "" : idFrom.key) || undefined,
  };
}

/** One worker for each of its ports. `complain` hears of annotations that make no sense. */
export function workersOf(
  pod: Pod,
  role: Role,
  { port, scheme }: PodSettings,
  complain: (problem: string) => void,
): readonly DiscoveredWorker[] {
  const { ip, modelId } = pod;
  if (ip === undefined) return [];
  const ports = portsOf(pod, port, complain);
  const bootstrap = bootstrapOf(pod, ports.length, complain);
  const host = ip.includes(":") ? `[${ip}]` : ip;
  return ports.map((own, at) => ({
    key: `${pod.uid}/${own}`,
    spec: {
      url: `${scheme === undefined ? "" : `${scheme}://`}${host}:${own}`,
      workerType: role,
      labels: {
        "smg.ai/pod-name": pod.name,
        "smg.ai/pod-uid": pod.uid,
        ...(modelId !== undefined && { served_model_name: modelId }),
      },
      ...(modelId !== undefined && { models: [modelId] }),
      ...(bootstrap !== undefined && { bootstrapPort: bootstrap.length === 1 ? bootstrap[0] : bootstrap[at] }),
    },
  }));
}

function portsOf({ ports: given }: Pod, port: number, complain: (problem: string) => void): readonly number[] {
  if (given === undefined) return [port];
  const ports = portList(given);
  if (ports !== undefined) return [...new Set(ports)];
  complain(
    `its annotation smg.ai/worker-ports ${JSON.stringify(given.slice(0, 100))} is no list of ports: ${port} is taken`,
  );
  return [port];
}

function bootstrapOf({ bootstrapPorts: given }: Pod, count: number, complain: (problem: string) => void) {
  if (given === undefined) return undefined;
  const ports = portList(given);
  if (ports !== undefined && (ports.length === 1 || ports.length === count)) return ports;
  complain(
    `its annotation sglang.ai/bootstrap-port ${JSON.stringify(given.slice(0, 100))} is neither a port nor a list of ${count}: it is passed over`,
  );
  return undefined;
}

/** Undefined where anything else is in the list. */
function portList(given: string): readonly number[] | undefined {
  const ports = given.split(",").map((port) => (/^\s*\d{1,5}\s*$/.test(port) ? Number(port) : 0));
  return ports.every((port) => port >= 1 && port <= 65535) ? ports : undefined;
}
