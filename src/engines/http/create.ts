/** From the URL of a server of OpenAI's API to an HttpEngine. */
import type { Outcome, ProfileAsk, RankLoad } from "../admin.ts";
import { EngineError } from "../engine.ts";
import { withoutAddresses } from "../engine-error.ts";
import type { EngineFacts } from "../facts.ts";
import { readAll } from "./body.ts";
import { type ConnectionOptions, type HttpAnswer, HttpConnection, type HttpRequest } from "./connection.ts";
import type { HttpEngine, HttpReply } from "./engine.ts";
import { httpKvSource, type KvPublished } from "./kv-source.ts";
import { llamaSlots, oldSglangLoads, sglangLoads, vllmMetrics } from "./loads.ts";
import { factsFrom, modelsOf, namesIn, runtimeOf } from "./models.ts";
import { withServerInfo } from "./server-info.ts";
import { statusError } from "./status.ts";

export interface HttpEngineOptions extends ConnectionOptions {
  /** Path that tells whether it is healthy; `/health` by default. */
  readonly healthPath?: string | undefined;
  /** Where it publishes KV events, unless it says so itself. */
  readonly kvEvents?: KvPublished | undefined;
}

/** Answers to what control asks are short. */
const CONTROL_BYTES = 16 << 20;
/** Statuses of a path that the server does not have. */
const MISSING: ReadonlySet<number> = new Set([404, 405, 501]);

/** Connects with the first call. Throws EngineError "invalid" for a URL of another form than `http(s)://host[:port]`. */
export function createHttpEngine(url: string, facts: EngineFacts, options: HttpEngineOptions = {}): HttpEngine {
  const connection = new HttpConnection(url, options);
  const { healthPath = "/health" } = options;
  const runtime = runtimeOf(facts);
  const names = namesIn(facts);
  const kvEvents = httpKvSource(url, facts, options.kvEvents);

  /** The text of an answer. Rejects with EngineErrors: "unimplemented" where the server has no such path. */
  async function ask(request: HttpRequest, deadlineMs: number): Promise<string> {
    const { status, text } = await exchange(connection, request, deadlineMs);
    if (status >= 200 && status < 300) return text;
    if (MISSING.has(status)) throw new EngineError("unimplemented", "the engine does not offer this");
    throw statusError(status, text);
  }

  const get = (path: string, deadlineMs: number) => ask({ method: "GET", path }, deadlineMs);

  /** Reads what `path` tells, or what `elsewhere` does where it tells nothing. */
  async function told(
    path: string,
    read: (text: string) => RankLoad[] | undefined,
    deadlineMs: number,
    elsewhere?: () => Promise<readonly RankLoad[]>,
  ): Promise<readonly RankLoad[]> {
    let loads: RankLoad[] | undefined;
    try {
      loads = read(await get(path, deadlineMs));
    } catch (error) {
      const isUnknown = error instanceof EngineError && error.kind === "unimplemented";
      if (!isUnknown || elsewhere === undefined) throw error;
    }
    if (loads !== undefined) return loads;
    if (elsewhere !== undefined) return elsewhere();
    throw new EngineError("unimplemented", `the engine's ${path} tells no load`);
  }

  async function order(path: string, deadlineMs: number, body?: object): Promise<Outcome> {
    const text = await ask({ method: "POST", path, body: JSON.stringify(body ?? {}) }, deadlineMs);
    return { success: true, message: withoutAddresses(text.trim()).slice(0, 1000) };
  }

  return {
    url,
    facts,
    nameOf: (id) => (names.length === 0 || names.includes(id) ? id : names[0]!),
    forward({ endpoint, body, headers }, signal) {
      const send = (path: string) => connection.request({ method: "POST", path, headers, body }, signal);
      return endpoint === "/v1/rerank" ? reranked(send) : send(endpoint);
    },
    page: get,
    async models(deadlineMs) {
      const models = modelsOf(await get("/v1/models", deadlineMs));
      if (models !== undefined) return models;
      throw new EngineError("failed", "the server does not list its models as OpenAI's API does");
    },
    async serving(deadlineMs) {
      const { status } = await exchange(connection, { method: "GET", path: healthPath }, deadlineMs);
      if (status >= 200 && status < 300) return "serving";
      return MISSING.has(status) ? "unimplemented" : "not_serving";
    },
    loads(deadlineMs) {
      const older = () => told("/get_load", json(oldSglangLoads), deadlineMs);
      if (runtime === "sglang") return told("/v1/loads", json(sglangLoads), deadlineMs, older);
      if (runtime === "vllm") return told("/metrics", vllmMetrics, deadlineMs);
      if (runtime === "llamacpp") return told("/slots", json(llamaSlots), deadlineMs);
      return Promise.reject(new EngineError("unimplemented", "the engine does not tell its load"));
    },
    flushCache(timeoutSecs, deadlineMs) {
      if (runtime === "vllm") return order("/reset_prefix_cache", deadlineMs);
      return order(timeoutSecs > 0 ? `/flush_cache?timeout=${timeoutSecs}` : "/flush_cache", deadlineMs);
    },
    startProfile: (profile, deadlineMs) => order("/start_profile", deadlineMs, profileBody(profile)),
    stopProfile: (deadlineMs) => order("/stop_profile", deadlineMs),
    ...(kvEvents !== undefined && { kvEvents }),
    close: () => connection.close(),
  };
}

/** Some servers have it at another path only. */
async function reranked(send: (path: string) => Promise<HttpAnswer>): Promise<HttpReply> {
  const first = await send("/v1/rerank");
  if (first.status !== 404) return first;
  const why = await readAll(first.body, CONTROL_BYTES);
  const second = await send("/rerank");
  if (second.status !== 404) return second;
  await second.body.cancel();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(why);
      controller.close();
    },
  });
  return { ...first, body }; // it may say that there is no such model
}

/** The members of SGLang's request; vLLM takes none, and ignores them. */
const profileBody = (ask: ProfileAsk): object => ({
  output_dir: ask.outputDir,
  start_step: ask.startStep,
  num_steps: ask.numSteps,
  activities: ask.activities,
  with_stack: ask.withStack,
  record_shapes: ask.recordShapes,
  profile_by_stage: ask.profileByStage,
});

/** Reads JSON with `read`; undefined for what is none. */
const json =
  <T>(read: (answer: unknown) => T | undefined) =>
  (text: string): T | undefined => {
    try {
      return read(JSON.parse(text));
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  };

export interface ConnectHttpOptions extends HttpEngineOptions {
  /** How long each question may take, in milliseconds. */
  readonly deadlineMs: number;
}

/**
 * Asks a server for its models, and for what it is. Rejects with EngineErrors: "unavailable" where nobody answers, "failed" for a server
 * of something else.
 */
export async function connectHttpEngine(
  url: string,
  { deadlineMs, ...options }: ConnectHttpOptions,
): Promise<HttpEngine> {
  const connection = new HttpConnection(url, options);
  try {
    const { status, text } = await exchange(connection, { method: "GET", path: "/v1/models" }, deadlineMs);
    if (status === 401 || status === 403)
      throw new EngineError("failed", "the server wants another key: see --worker-api-key");
    const found = status === 200 ? factsFrom(text) : undefined;
    if (found === undefined) throw new EngineError("failed", `the server has no list of models (${status})`);
    const told = runtimeOf(found) === "sglang" ? await serverInfo(connection, deadlineMs) : undefined;
    return createHttpEngine(url, told === undefined ? found : withServerInfo(found, told), options);
  } finally {
    connection.close();
  }
}

/** What SGLang tells of how it was started; undefined: nothing. */
async function serverInfo(connection: HttpConnection, deadlineMs: number): Promise<unknown> {
  for (const path of ["/server_info", "/get_server_info"]) {
    const { status, text } = await exchange(connection, { method: "GET", path }, deadlineMs);
    if (status === 200) return json((answer) => answer)(text);
  }
  return undefined;
}

async function exchange(
  connection: HttpConnection,
  request: HttpRequest,
  deadlineMs: number,
): Promise<{ readonly status: number; readonly text: string }> {
  const deadline = AbortSignal.timeout(deadlineMs);
  try {
    const { status, body } = await connection.request(request, deadline);
    return { status, text: new TextDecoder().decode(await readAll(body, CONTROL_BYTES)) };
  } catch (error) {
    if (!deadline.aborted) throw error;
    throw new EngineError("timeout", "the engine did not answer in time", { cause: error });
  }
}
