/** Workers in pods of Kubernetes. */
import type { Logger } from "../../../telemetry/log.ts";
import type { Clock } from "../../clock.ts";
import type { SourceSink, WorkerSource } from "../../worker-source.ts";
import type { PodClient } from "./client.ts";
import { type ModelIdFrom, type Pod, type PodJson, type PodSettings, readPod, workersOf } from "./pods.ts";
import type { RoleSelector } from "./roles.ts";
import { followPods, type WatchSettings } from "./watch.ts";

export interface KubernetesSettings extends PodSettings {
  readonly roles: readonly RoleSelector[];
  readonly modelIdFrom: ModelIdFrom | undefined;
  readonly watch: WatchSettings;
}

/** Changes that come at once are told at once. */
const GATHER_MS = 50;
/** Complaints about pods that are kept so that none is repeated. */
const MAX_COMPLAINTS = 1000;

/** A pod is known by its UID: a new one with the name or the address of an old one is another worker. */
export function kubernetesSource(
  settings: KubernetesSettings,
  client: PodClient,
  clock: Clock,
  log: Logger,
): WorkerSource {
  return {
    name: "kubernetes",
    start(sink, signal) {
      const pods = new Pods(settings, clock, log, sink);
      for (const { role, selector } of settings.roles) {
        const found = pods.of(role);
        const around = { client, clock, settings: settings.watch, random: Math.random };
        void followPods(selector, found, around, signal);
      }
    },
  };
}

/** Those of all roles, by UID. */
class Pods {
  private readonly byRole: {
    readonly role: RoleSelector["role"];
    readonly pods: Map<string, Pod>;
    isKnown: boolean;
  }[] = [];
  private readonly complaints = new Set<string>();
  private isDue = false;

  constructor(
    private readonly settings: KubernetesSettings,
    private readonly clock: Clock,
    private readonly log: Logger,
    private readonly sink: SourceSink,
  ) {}

  of(role: RoleSelector["role"]) {
    const pods = new Map<string, Pod>();
    const known = { role, pods, isKnown: false };
    this.byRole.push(known);
    const put = (json: PodJson) => {
      const pod = readPod(json, this.settings.modelIdFrom);
      if (pod !== undefined) pods.set(pod.uid, pod);
    };
    return {
      all: (list: readonly PodJson[]) => {
        known.isKnown = true;
        pods.clear();
        for (const pod of list) put(pod);
        this.tell();
      },
      changed: (pod: PodJson) => {
        put(pod);
        this.tell();
      },
      gone: ({ metadata }: PodJson) => {
        pods.delete(metadata?.uid ?? "");
        this.tell();
      },
      problem: (error: Error) => this.sink.problem(error),
    };
  }

  private tell(): void {
    // until then a pod may seem to have another role than it has
    if (this.isDue || !this.byRole.every(({ isKnown }) => isKnown)) return;
    this.isDue = true;
    this.clock.after(GATHER_MS, () => {
      this.isDue = false;
      this.sink.replace(this.workers());
    });
  }

  private workers() {
    const seen = new Set<string>();
    return this.byRole.flatMap(({ role, pods }) =>
      [...pods.values()].flatMap((pod) => {
        if (seen.has(pod.uid)) return [];
        seen.add(pod.uid);
        return workersOf(pod, role, this.settings, (problem) => this.complain(pod, problem));
      }),
    );
  }

  private complain({ uid, namespace, name }: Pod, problem: string): void {
    const complaint = `${uid} ${problem}`;
    if (this.complaints.has(complaint)) return;
    if (this.complaints.size >= MAX_COMPLAINTS) this.complaints.clear();
    this.complaints.add(complaint);
    this.log.warn("a pod has an annotation that makes no sense", { pod: `${namespace}/${name}`, problem });
  }
}
