import { GrpcStatus } from "../../../engines/grpc-error.ts";
import { PROTOS } from "../../../engines/protos.ts";
import { WireReader } from "../../../protobuf/reader.ts";
import { WireError } from "../../../protobuf/wire-error.ts";
import { WireWriter } from "../../../protobuf/writer.ts";
import {
  type Choice,
  Generation,
  type GenerationSpec,
  type GenerationStyle,
  type GenerationWriter,
} from "../../generation.ts";
import type { GrpcMethod } from "../../grpc/server.ts";
import { dropAt } from "../../handover/fetch.ts";
import { transferHandover } from "../../handover/transfer-params.ts";
import type { SimulatorHost } from "../../host.ts";
import { logRequest } from "../../log-request.ts";
import { logprobRow } from "../../output/logprobs.ts";
import type { Dialect } from "../dialect.ts";
import {
  abortRequest,
  failing,
  flushCache,
  subscribeKvEvents,
  tokenizerBundle,
  UNREADABLE,
  written,
} from "../methods.ts";
import { jsonObject, refusal } from "./checks.ts";
import { embed } from "./embed.ts";
import { loads, modelInfo, serverInfo } from "./info.ts";
import { decodeGenerateRequest } from "./request.ts";

const proto = PROTOS.vllm;

/** `vllm.grpc.engine.VllmEngine` as vLLM 0.32 with its gRPC servicer serves it. */
export const vllm: Dialect = {
  name: "vllm",
  proto,
  file: "vllm_engine.proto",
  healthService: "engine",
  methods: (host) => ({
    Generate: generate(host),
    Embed: embed(host),
    HealthCheck: written((w) => {
      w.uint(1, host.alive ? 1 : 0);
      w.text(2, host.alive ? "Health" : "Engine is not alive");
    }),
    Abort: abort(host),
    GetModelInfo: written((w) => modelInfo(host, w)),
    GetServerInfo: written((w) => serverInfo(host, w)),
    GetLoads: written((w) => loads(host, w)),
    GetTokenizer: tokenizerBundle(host),
    FlushCache: flushCache(host, proto, {
      everyMs: 100,
      leastSecs: 0,
      checks: true,
      done: "Local KV prefix cache flushed successfully",
      busy: "KV prefix cache reset refused; requests may be in flight",
    }),
    StartProfile: failing(GrpcStatus.INTERNAL, `Start profiling failed: ${NO_PROFILER}`),
    StopProfile: failing(GrpcStatus.INTERNAL, `Stop profiling failed: ${NO_PROFILER}`),
    SubscribeKvEvents: subscribeKvEvents(host),
  }),
};

const NO_PROFILER = "Profiling is not enabled. Please set --profiler-config to enable profiling.";

const STYLE: GenerationStyle = {
  completes: "each",
  abort: "complete",
  oneTokenChunks: false,
  trimsStop: false,
  namesEos: false,
  knowsOtherEos: true,
};

/** One for all: a message is copied out before the next is written. */
const writer = new WireWriter();

function generate(host: SimulatorHost): GrpcMethod {
  return (call, message) => {
    let request: ReturnType<typeof decodeGenerateRequest>;
    try {
      request = decodeGenerateRequest(message);
    } catch (error) {
      if (error instanceof WireError) return call.end(GrpcStatus.INTERNAL, UNREADABLE);
      throw error;
    }
    const { sampling, stream, requestId } = request;
    const prompt =
      request.inputIds ??
      (request.text !== undefined && host.model.tokenizer ? host.model.tokenizer.encode(request.text) : NO_IDS);
    const { kvTransferParamsJson: json, kvTransferParams: typed } = request;
    const params = { json: json === undefined ? undefined : jsonObject(json), typed };
    const handover = transferHandover(params, host.pairing, requestId, host.counts.handover);
    const spec: GenerationSpec = {
      requestId,
      prompt,
      sampling,
      stream,
      rank: request.dataParallelRank,
      constraintWaits: host.waitsForReasoning,
      extra: {
        ...(json !== undefined ? { kv_transfer_params_json: json } : {}),
        ...(typed !== undefined ? { kv_transfer_params: typed } : {}),
        ...(request.dataParallelRank !== undefined ? { data_parallel_rank: request.dataParallelRank } : {}),
      },
      handover,
    };
    const problem =
      host.model.poolingDim === undefined ? refusal(request, prompt, host) : "This model does not support generation";
    if (problem !== undefined) {
      // The other side would keep the blocks for its lease.
      if (handover?.kind === "take") dropAt(handover);
      logRequest(host, spec, call, "refused", problem);
      return call.end(GrpcStatus.INVALID_ARGUMENT, problem);
    }
    if (!host.alive) {
      logRequest(host, spec, call, "refused", DEAD);
      call.end(GrpcStatus.INTERNAL, DEAD);
      return;
    }
    new Generation(host, spec, call, STYLE, messages);
  };
}

const DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause.";
const NO_IDS = new Uint32Array(0);

/** GenerateResponse: field 1 a GenerateStreamChunk, field 2 a GenerateComplete. */
const messages: GenerationWriter = {
  chunk(generation, choice, from, to) {
    const w = writer.reset();
    const mark = w.begin(1);
    if (to > from) ids(w, 1, choice, from, to);
    w.uint(2, generation.spec.prompt.length);
    w.uint(3, to - from);
    w.uint(4, choice.sequence?.cachedTokens ?? 0);
    const { sampling } = generation.spec;
    if (sampling.logprobs !== undefined && to > from) outputLogprobs(w, 5, generation, choice, from, to);
    if (sampling.promptLogprobs !== undefined && from === 0 && to > 0) inputLogprobs(w, 6, generation);
    w.uint(7, choice.index);
    w.end(mark);
    generation.call.send(w.bytes, w.length);
  },
  complete(generation, choice, reason) {
    const { sampling, stream, prompt } = generation.spec;
    // A streaming Complete repeats the last chunk, and counts only that.
    const from = stream ? choice.lastFrom : 0;
    const to = stream ? choice.lastTo : choice.generated;
    const plan = choice.sequence?.plan;
    const w = writer.reset();
    const mark = w.begin(2);
    if (to > from) ids(w, 1, choice, from, to);
    w.text(2, reason);
    w.uint(3, prompt.length);
    w.uint(4, to - from);
    w.uint(5, choice.sequence?.cachedTokens ?? 0);
    if (sampling.logprobs !== undefined && to > from) outputLogprobs(w, 6, generation, choice, from, to);
    if (sampling.promptLogprobs !== undefined && !stream) inputLogprobs(w, 7, generation);
    w.uint(8, choice.index);
    if (choice.finished && plan?.matchedTokenId !== undefined) {
      w.uint32(10, plan.matchedTokenId);
    } else if (choice.finished && plan?.matchedStop !== undefined) w.text(11, plan.matchedStop);
    if (generation.handoff !== undefined) handoff(w, generation.handoff);
    w.end(mark);
    generation.call.send(w.bytes, w.length);
  },
};

/** What the decode side needs, as JSON, and the older message with the address alone. */
function handoff(w: WireWriter, json: string): void {
  const { remote_host: host, remote_port: port } = JSON.parse(json) as { remote_host: string; remote_port: number };
  const mark = w.begin(9);
  w.text(1, host);
  w.uint(2, port);
  w.end(mark);
  w.text(12, json);
}

function ids(w: WireWriter, field: number, choice: Choice, from: number, to: number): void {
  const plan = choice.sequence!.plan!;
  const mark = w.begin(field);
  for (let i = from; i < to; i++) w.varint(plan.idAt(i));
  w.end(mark);
}

/** OutputLogProbs: the tokens' own values and ids, and a TopLogProbs row for each when rows were asked for. */
function outputLogprobs(w: WireWriter, field: number, g: Generation, choice: Choice, from: number, to: number): void {
  const { sampling } = g.spec;
  const count = sampling.logprobs ?? 0;
  const plan = choice.sequence!.plan!;
  const rows = [];
  for (let i = from; i < to; i++) {
    const row = logprobRow(plan.idAt(i), i, count, sampling.temperature === 0, g.host.model.vocabSize);
    const scripted = g.rule?.logprobs?.[i];
    rows.push(
      scripted === undefined
        ? row
        : { ...row, logprob: scripted, topLogprobs: [scripted, ...row.topLogprobs.slice(1)] },
    );
  }
  const mark = w.begin(field);
  w.packedFloats(
    1,
    rows.map((row) => row.logprob),
  );
  ids(w, 2, choice, from, to);
  if (count > 0) for (const row of rows) topRow(w, row.topIds, row.topLogprobs.slice(0, row.topIds.length));
  w.end(mark);
}

/** InputLogProbs: one entry per prompt token, the first without a value. */
function inputLogprobs(w: WireWriter, field: number, g: Generation): void {
  const { prompt, sampling } = g.spec;
  const count = sampling.promptLogprobs ?? 0;
  const mark = w.begin(field);
  const rows = Array.from(prompt, (id, i) => logprobRow(id, i, count, false, g.host.model.vocabSize));
  for (const [i, row] of rows.entries()) {
    const entry = w.begin(1);
    if (i > 0) {
      w.float(1, row.logprob);
    }
    w.end(entry);
  }
  w.packedUint32(2, prompt);
  if (count > 0)
    for (const [i, row] of rows.entries()) topRow(w, i > 0 ? row.topIds : [], i > 0 ? row.topLogprobs : []);
  w.end(mark);
}

function topRow(w: WireWriter, topIds: readonly number[], values: readonly number[]): void {
  const mark = w.begin(3);
  w.packedFloats(1, values);
  w.packedUint32(2, topIds);
  w.end(mark);
}

function abort(host: SimulatorHost): GrpcMethod {
  return (call, message) => {
    const r = new WireReader(message);
    while (r.next()) {
      if (r.field === 1) abortRequest(host, r.string());
      else r.skip();
    }
    call.send(NO_BYTES);
    call.end();
  };
}

const NO_BYTES = new Uint8Array(0);
