/** Workers that speak HTTP, as control asks them; their code is loaded with the first of them. */
import type { ServeConfig } from "../config/serve-options.ts";
import type { EngineFacts } from "../engines/facts.ts";
import type { HttpTls } from "../engines/http/connection.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import type { WorkerSpec } from "./worker-spec.ts";

export interface HttpEngines {
  /** Asks the server for all that its facts hold. Rejects with EngineErrors. */
  connect(url: string, spec: WorkerSpec, deadlineMs: number): Promise<HttpEngine>;
  /** Of a server that was connected to before. */
  create(url: string, spec: WorkerSpec, facts: EngineFacts): HttpEngine;
}

type Settings = Pick<
  ServeConfig,
  "workerApiKey" | "healthCheckEndpoint" | "connectTimeoutMs" | "kvEventsEndpoint" | "kvEventsReplayEndpoint"
>;

export function httpEngines(
  { workerApiKey, healthCheckEndpoint, connectTimeoutMs, kvEventsEndpoint, kvEventsReplayEndpoint }: Settings,
  tls: HttpTls | undefined,
): HttpEngines {
  let code: typeof import("../engines/http/create.ts") | undefined;
  const optionsOf = ({ apiKey = workerApiKey, health, labels }: WorkerSpec) => ({
    apiKey,
    healthPath: health?.endpoint ?? healthCheckEndpoint,
    connectTimeoutMs,
    tls,
    kvEvents: { labels, endpoint: kvEventsEndpoint, replayEndpoint: kvEventsReplayEndpoint },
  });
  return {
    async connect(url, spec, deadlineMs) {
      code ??= await import("../engines/http/create.ts");
      return code.connectHttpEngine(url, { ...optionsOf(spec), deadlineMs });
    },
    create(url, spec, facts) {
      if (code === undefined) throw new Error("the worker was never connected to");
      return code.createHttpEngine(url, facts, optionsOf(spec));
    },
  };
}
