/** What is asked of all workers at once, in SMG's form. */
import type { RankLoad } from "../../engines/admin.ts";
import { InvalidRequestError } from "../../errors.ts";
import type { WorkerLoads, WorkerOutcome } from "../../fleet/admin.ts";
import type { ServerContext } from "../../server/context.ts";
import type { StartProfileRequest, StopProfileRequest } from "./schema.ts";

type Context = Pick<ServerContext, "control">;

/** An answer whose status tells whether every worker did it. */
export interface Drawn {
  readonly status: 200 | 206;
  readonly body: object;
}

/** Longest time that a flush may wait for workers to be idle, in seconds. */
const LONGEST_WAIT = 3600;

/** `timeout`: seconds that each worker may take to become idle, as text. */
export async function flushCache(timeout: string | undefined, { control }: Context): Promise<Drawn> {
  const secs = timeout === undefined ? 0 : Number(timeout);
  if (!(secs >= 0 && secs <= LONGEST_WAIT))
    throw new InvalidRequestError(`timeout must be a number of seconds from 0 to ${LONGEST_WAIT}`, {
      param: "timeout",
    });
  const outcomes = await control.admin.flushCache(secs);
  const count = (kind: WorkerOutcome["kind"]) => outcomes.filter((one) => one.kind === kind).length;
  const told = drawn(outcomes, "flushed");
  return {
    status: told.status,
    body: {
      ...told.body,
      workers_flushed: told.done,
      total_http_workers: count("http"),
      total_grpc_workers: count("grpc"),
      total_zmq_workers_skipped: 0,
      total_workers: outcomes.length,
    },
  };
}

export async function startProfile(body: StartProfileRequest, { control }: Context): Promise<Drawn> {
  const ask = {
    outputDir: body.output_dir,
    startStep: body.start_step,
    numSteps: body.num_steps,
    activities: body.activities,
    withStack: body.with_stack,
    recordShapes: body.record_shapes,
    profileByStage: body.profile_by_stage,
  };
  return profiled(await control.admin.startProfile(ask, body.url), "started profiling");
}

export async function stopProfile({ url }: StopProfileRequest, { control }: Context): Promise<Drawn> {
  return profiled(await control.admin.stopProfile(url), "stopped profiling");
}

function profiled(outcomes: readonly WorkerOutcome[], what: string): Drawn {
  const told = drawn(outcomes, what);
  return {
    status: told.status,
    body: { ...told.body, workers_profiled: told.done, total_workers: outcomes.length },
  };
}

function drawn(outcomes: readonly WorkerOutcome[], what: string): Drawn & { readonly done: number } {
  const successful = outcomes.filter(({ error }) => error === undefined).map(({ url }) => url);
  const failed = outcomes.flatMap(({ url, error }) => (error === undefined ? [] : [{ worker: url, error }]));
  const done = successful.length;
  return {
    status: failed.length === 0 ? 200 : 206,
    done,
    body: {
      status: failed.length === 0 ? "success" : "partial_success",
      message: `${done} of ${outcomes.length} workers ${what}`,
      ...(done > 0 && { successful }),
      ...(failed.length > 0 && { failed }),
    },
  };
}

export async function getLoads({ control }: Context): Promise<object> {
  return { workers: (await control.admin.loads()).map(loadObject) };
}

function loadObject({ url, ranks }: WorkerLoads): object {
  if (ranks === undefined) return { worker: url, load: -1 };
  const used = ranks.map(({ usedTokens }) => usedTokens);
  const isKnown = used.every((tokens) => tokens !== undefined);
  return {
    worker: url,
    load: isKnown ? used.reduce((sum, tokens) => sum + tokens, 0) : -1,
    details: { timestamp: new Date().toISOString(), dp_rank_count: ranks.length, loads: ranks.map(rankObject) },
  };
}

/** SMG shows 0 for what an engine does not tell. */
function rankObject(rank: RankLoad): object {
  return {
    dp_rank: rank.rank,
    num_running_reqs: rank.running,
    num_waiting_reqs: rank.waiting,
    num_waiting_uncached_tokens: rank.waitingUncachedTokens ?? 0,
    num_total_reqs: rank.running + rank.waiting,
    num_used_tokens: rank.usedTokens ?? 0,
    max_total_num_tokens: rank.capacityTokens ?? 0,
    token_usage: rank.tokenUsage ?? 0,
    gen_throughput: rank.throughput ?? 0,
    cache_hit_rate: rank.cacheHitRate ?? 0,
    utilization: rank.utilization ?? 0,
    max_running_requests: rank.maxRunning ?? 0,
  };
}
