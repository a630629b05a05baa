import { samplingProblem } from "../dialects/vllm/checks.ts";
import { Generation, type GenerationSpec, type GenerationStyle } from "../generation.ts";
import type { SimulatorHost } from "../host.ts";
import type { HttpCall } from "../http/call.ts";
import { serveHttp } from "../http/server.ts";
import { logRequest } from "../log-request.ts";
import type { EngineServer } from "../net/engine-server.ts";
import type { SimulatorOptions } from "../options.ts";
import { TextAnswer } from "./answer.ts";
import { loadRoute } from "./figures.ts";
import { FLAVORS, type Flavor } from "./flavors.ts";
import { pairRequest, refusePair } from "./pairs.ts";
import { type Body, BodyError, chatRequest, completionRequest, isRecord, type TextRequest } from "./request.ts";
import { type AnswerShape, chatShape, completionShape } from "./shapes.ts";
import { embeddings, rerank } from "./vectors.ts";

const STYLE: GenerationStyle = {
  completes: "each",
  abort: "bare-ok",
  oneTokenChunks: false,
  trimsStop: false,
  namesEos: false,
  knowsOtherEos: true,
};

const DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause.";

/** Serves OpenAI's API over HTTP as one of the engines does. Throws when the port is taken. */
export function serveOpenAi(
  host: SimulatorHost,
  settings: Pick<SimulatorOptions, "flavor" | "apiKey">,
  at: { readonly host: string; readonly port: number },
): EngineServer {
  const flavor = FLAVORS[settings.flavor];
  return serveHttp({
    ...at,
    handle(call) {
      call.errorForm = flavor.errors;
      const name = `${call.request.method} ${call.path}`;
      host.counts.calls[name] = (host.counts.calls[name] ?? 0) + 1;
      const { apiKey } = settings;
      const isOpen = apiKey === undefined || call.request.headers.get("authorization") === `Bearer ${apiKey}`;
      if (!isOpen && call.path.startsWith("/v1/")) return call.json(401, { error: "Unauthorized" });
      if (call.request.method === "POST") post(host, flavor, call);
      else get(host, flavor, call);
    },
  });
}

function get(host: SimulatorHost, flavor: Flavor, call: HttpCall): void {
  const { model } = host;
  switch (call.path) {
    case "/health":
      if (!flavor.health) break;
      if (host.alive) call.body(200, flavor.health.type, flavor.health.text);
      else call.fail(503, "the engine is not alive");
      return;
    case "/":
      if (flavor.owner !== "library") break;
      call.body(200, "text/plain; charset=utf-8", "Ollama is running");
      return;
    case "/version":
    case "/api/version":
      call.json(200, { version: "simulated" });
      return;
    case "/get_server_info":
    case "/server_info":
      if (!flavor.serverInfo) break;
      call.json(200, flavor.serverInfo(host));
      return;
    case "/v1/models": {
      const created = Math.floor(Date.now() / 1000);
      const entry = {
        id: model.servedName,
        object: "model",
        created,
        owned_by: flavor.owner,
        ...flavor.modelFacts(host),
      };
      call.json(200, { object: "list", data: [entry] });
      return;
    }
    default:
      if (loadRoute(host, flavor, call)) return;
  }
  call.json(404, { detail: "Not Found" });
}

function post(host: SimulatorHost, flavor: Flavor, call: HttpCall): void {
  try {
    const generates = host.model.poolingDim === undefined;
    if (generates && call.path === "/v1/chat/completions") {
      const body = readBody(host, flavor, call);
      if (body) text(host, flavor, call, body, chatRequest(body, host.model), chatShape);
    } else if (generates && call.path === "/v1/completions") {
      const body = readBody(host, flavor, call);
      if (body) text(host, flavor, call, body, completionRequest(body, host.model), completionShape);
    } else if (!generates && call.path === "/v1/embeddings") {
      const body = readBody(host, flavor, call);
      if (body) embeddings(host, call, body, requestId(call, "embd-"));
    } else if (!generates && flavor.rerank.includes(call.path)) {
      const body = readBody(host, flavor, call);
      if (body) rerank(host, call, flavor, body, requestId(call, "rerank-"));
    } else call.json(404, { detail: "Not Found" });
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    call.fail(400, error.message);
  }
}

/** The body of a request that can be served; undefined when the answer is given already. Throws BodyError. */
function readBody(host: SimulatorHost, flavor: Flavor, call: HttpCall): Body | undefined {
  let body: unknown;
  try {
    body = JSON.parse(call.request.body.toString("utf8"));
  } catch {
    throw new BodyError("the body is not JSON");
  }
  if (!isRecord(body)) throw new BodyError("the body is not an object");
  const { model } = body;
  if (flavor.checksModel && model !== undefined && model !== host.model.servedName) {
    call.fail(404, flavor.unknownModel(String(model)));
    return undefined;
  }
  if (host.alive) return body;
  call.fail(500, DEAD);
  return undefined;
}

function requestId(call: HttpCall, prefix: string): string {
  return call.request.headers.get("x-request-id") ?? `${prefix}${crypto.randomUUID().replaceAll("-", "")}`;
}

function text(
  host: SimulatorHost,
  flavor: Flavor,
  call: HttpCall,
  body: Body,
  request: TextRequest,
  shape: AnswerShape,
): void {
  const { model } = host;
  const { sampling, stream } = request;
  const id = `${shape === chatShape ? "chatcmpl" : "cmpl"}-${requestId(call, "")}`;
  const answer = new TextAnswer(host, call, flavor, request, shape, id);
  const parts = request.prompts.map(() => call.part());
  const pair = pairRequest(host, body, request, id);
  const problem =
    pair.problem ??
    samplingProblem(sampling, model.vocabSize) ??
    lengthProblem(request, model.contextLength) ??
    rankProblem(request.rank, host.ranks.size);
  for (const [i, prompt] of request.prompts.entries()) {
    const spec: GenerationSpec = {
      requestId: id,
      prompt,
      sampling,
      stream,
      rank: pair.rank,
      constraintWaits: host.waitsForReasoning,
      extra: { body },
      handover: pair.handover,
    };
    const part = parts[i]!;
    part.streams = stream;
    if (problem !== undefined) logRequest(host, spec, part, "refused", problem);
    else if (part.open) new Generation(host, spec, part, STYLE, answer.writer(i));
  }
  if (problem === undefined) return;
  refusePair(pair);
  call.fail(400, problem);
}

function lengthProblem({ prompts, sampling }: TextRequest, limit: number): string | undefined {
  for (const { length } of prompts) {
    if (length === 0) return "The prompt is empty";
    const asked = length + (sampling.maxTokens ?? 1);
    if (asked > limit)
      return (
        `This model's maximum context length is ${limit} tokens. However, you requested ${sampling.maxTokens ?? 1} output ` +
        `tokens and your prompt contains ${length} input tokens, for a total of ${asked} tokens.`
      );
  }
  return undefined;
}

function rankProblem(rank: number | undefined, size: number): string | undefined {
  return rank === undefined || (rank >= 0 && rank < size)
    ? undefined
    : `data_parallel_rank ${rank} is out of range [0, ${size}).`;
}
