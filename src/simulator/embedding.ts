import { GrpcStatus } from "../engines/grpc-error.ts";
import type { EngineCall } from "./call.ts";
import type { Sequence } from "./core/sequence.ts";
import { playFault } from "./faults.ts";
import { opened, type SimulatorHost, takeRule } from "./host.ts";
import { logRequest } from "./log-request.ts";
import { unitVector } from "./output/vector.ts";
import { defaultSampling } from "./sampling.ts";
import { isFinal } from "./script/book.ts";
import type { RequestOutcome, RequestRecord } from "./stats.ts";

export interface EmbeddingSpec {
  readonly requestId: string;
  readonly prompt: Uint32Array;
  readonly dimensions: number;
}

/** How the log and the counts see a request for a vector. */
export const embeddingRecord = (
  host: SimulatorHost,
  { requestId, prompt }: Pick<EmbeddingSpec, "requestId" | "prompt">,
  call: EngineCall,
  outcome: "running" | "refused",
  details?: string,
): RequestRecord =>
  logRequest(
    host,
    { requestId, prompt, sampling: defaultSampling(), stream: false, extra: {} },
    call,
    outcome,
    details,
  );

/**
 * Starts a request for a vector: it waits and takes as long as a prompt of its length, and plays its rule's delay and fault (whatever
 * number of tokens that names). `answer` gets the vector.
 */
export function startEmbedding(
  host: SimulatorHost,
  spec: EmbeddingSpec,
  call: EngineCall,
  answer: (vector: Float32Array) => void,
): void {
  const { prompt, requestId, dimensions } = spec;
  const { counts, model } = host;
  const rank = host.ranks.next();
  const driver = host.ranks.at(rank);
  const rule = takeRule(host, prompt);
  const record = embeddingRecord(host, spec, call, "running");
  record.rank = rank;
  let sequence: Sequence | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const close = opened(host, requestId, {
    abort() {
      if (end("aborted")) call.end(GrpcStatus.INTERNAL, `Embed request ${requestId} did not produce a result`);
    },
  });

  /** Books the end; false if it had ended. */
  function end(outcome: RequestOutcome, details?: string): boolean {
    if (record.outcome !== "running") return false;
    clearTimeout(timer);
    const before = driver.core.cache.inUse;
    if (sequence) driver.abort(sequence);
    if (outcome === "aborted") counts.abortedByRpc++;
    else if (outcome === "cancelled") counts.abortedByCancel++;
    else if (outcome === "faulted") counts.faulted++;
    else counts.finished++;
    if (outcome === "aborted" || outcome === "cancelled")
      counts.blocksFreedByAborts += before - driver.core.cache.inUse;
    record.outcome = outcome;
    if (details !== undefined) record.details = details;
    close();
    return true;
  }

  function run(): void {
    if (rule?.fault && isFinal(rule.fault)) {
      if (rule.fault.kind === "stall") return;
      end("faulted", rule.fault.kind === "status" ? rule.fault.message : undefined);
      playFault(rule.fault, call, host);
      return;
    }
    if (rule?.fault) playFault(rule.fault, call, host);
    sequence = driver.submit({
      prompt,
      plan(cachedTokens) {
        record.cachedTokens = cachedTokens;
        counts.promptTokens += prompt.length;
        counts.cachedTokens += cachedTokens;
        return { length: 1, idAt: () => 0, finishReason: "stop" };
      },
      onToken() {},
      onFinish() {
        if (!end("finished")) return;
        counts.messagesSent++;
        answer(unitVector(prompt, dimensions, model.specialIds));
        call.end();
      },
    });
  }

  call.onCancel = () => end("cancelled");
  if (rule?.fault?.kind === "hang") return;
  if (rule && rule.delayMs > 0) timer = setTimeout(run, rule.delayMs);
  else run();
}
