import { prefillWorkers } from "../../config/disaggregation.ts";
import { parseDnsName } from "../../config/dns-name.ts";
import type { ServeConfig } from "../../config/serve-options.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { Clock } from "../clock.ts";
import type { WorkerSource } from "../worker-source.ts";
import type { WorkerSpec } from "../worker-spec.ts";
import { dnsSource } from "./dns.ts";
import { fileSource, readWorkerFile } from "./file.ts";
import { podClient } from "./kubernetes/client.ts";
import { modelIdFrom } from "./kubernetes/pods.ts";
import { roleSelectors } from "./kubernetes/roles.ts";
import { kubernetesSource } from "./kubernetes/source.ts";
import { staticSource } from "./static.ts";

const KUBERNETES = { requestMs: 30_000, graceMs: 5000 };
const KUBERNETES_WATCH = { resyncMs: 60_000, firstPauseMs: 100, maxPauseMs: 30_000 };

/** Where the workers come from, by the settings. The workers' API is one more source, which is always there. */
export function sourcesOf(config: ServeConfig, clock: Clock, log: Logger): readonly WorkerSource[] {
  const scheme = config.serviceDiscoveryScheme === "auto" ? undefined : config.serviceDiscoveryScheme;
  const names = config.workerUrls.flatMap((url) => parseDnsName(url) ?? []);
  const sources = [staticSource(givenWorkers(config))];
  if (config.workerFile !== undefined) sources.push(fileSource(config.workerFile, clock));
  if (names.length > 0) {
    const dns = { refreshMs: config.dnsRefreshSecs * 1000, keepMs: config.dnsKeepSecs * 1000, scheme };
    sources.push(dnsSource(names, dns, clock));
  }
  if (config.serviceDiscovery) {
    const settings = {
      roles: roleSelectors(config),
      port: config.serviceDiscoveryPort,
      scheme,
      modelIdFrom: modelIdFrom(config.modelIdFrom),
      watch: KUBERNETES_WATCH,
    };
    const client = podClient({ namespace: config.serviceDiscoveryNamespace, ...KUBERNETES });
    sources.push(kubernetesSource(settings, client, clock, log));
  }
  return sources;
}

/** Those whose addresses are in the settings. */
const givenWorkers = ({ workerUrls, prefill, decode }: ServeConfig): readonly WorkerSpec[] => [
  ...workerUrls.filter((url) => parseDnsName(url) === undefined).map((url) => ({ url })),
  ...prefillWorkers(prefill).map((worker) => ({ ...worker, workerType: "prefill" as const })),
  ...decode.map((url) => ({ url, workerType: "decode" as const })),
];

/** What a source could not start with, one line each. Changes that come later are judged when they come. */
export async function discoveryProblems({ workerFile }: Pick<ServeConfig, "workerFile">): Promise<readonly string[]> {
  if (workerFile === undefined) return [];
  try {
    await readWorkerFile(workerFile);
    return [];
  } catch (error) {
    return [`--worker-file: ${error instanceof Error ? error.message : error}`];
  }
}
