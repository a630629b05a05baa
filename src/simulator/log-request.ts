import type { EngineCall } from "./call.ts";
import type { GenerationSpec } from "./generation.ts";
import type { SimulatorHost } from "./host.ts";
import type { RequestRecord } from "./stats.ts";

/** Books a generation request, one that runs or one that was refused. */
export function logRequest(
  host: SimulatorHost,
  spec: GenerationSpec,
  call: EngineCall,
  outcome: "running" | "refused",
  details?: string,
): RequestRecord {
  host.counts.received++;
  if (outcome === "refused") host.counts.refused++;
  const record: RequestRecord = {
    requestId: spec.requestId,
    promptTokens: spec.prompt.length,
    promptIds: spec.prompt,
    sampling: spec.sampling,
    stream: spec.stream,
    metadata: Object.fromEntries([...call.headers].filter(([name]) => !name.startsWith(":"))),
    extra: call.ignored === undefined ? spec.extra : { ...spec.extra, ignored: call.ignored },
    outcome,
    cachedTokens: 0,
    tokensSent: 0,
    ...(details !== undefined ? { details } : {}),
  };
  host.log.add(record);
  return record;
}
