/** The engine dialects that the gateway speaks. */
import type { ProtoText } from "../protobuf/proto-text.ts";
import type { ControlRules } from "./control-rules.ts";
import type { EmbedRules } from "./embed.ts";
import type { EngineFacts } from "./facts.ts";
import { Feature, type FeatureName } from "./features.ts";
import type { GenerateRules } from "./generate-rules.ts";
import { mlxControl } from "./mlx/info.ts";
import { mlxGenerate } from "./mlx/rules.ts";
import { PROTOS } from "./protos.ts";
import { sglangControl } from "./sglang/info.ts";
import { sglangGenerate } from "./sglang/rules.ts";
import { tokenspeedControl } from "./tokenspeed/info.ts";
import { tokenspeedGenerate } from "./tokenspeed/rules.ts";
import { trtllmControl } from "./trtllm/info.ts";
import { trtllmGenerate } from "./trtllm/rules.ts";
import { vllmControl } from "./vllm/info.ts";
import { vllmGenerate } from "./vllm/rules.ts";

/** How two engines share a request. */
export type Pairing =
  /** Both get it at once, with a room below `rooms` at the one that prefills. */
  | { readonly kind: "meeting"; readonly rooms: bigint }
  /** The one that prefills ends first, and says what the other must be told. */
  | { readonly kind: "relay" };

export interface Dialect {
  readonly name: keyof typeof PROTOS;
  readonly proto: ProtoText;
  /** Full name of the service. */
  readonly service: string;
  /** RPC that every servicer of the dialect answers without work: HealthCheck of some runs a generation. */
  readonly probe: "HealthCheck" | "GetModelInfo";
  /** What the newest servicer offers: bits of `Feature`. */
  readonly features: number;
  /** Most rows of top logprobs; 0: no limit known. */
  readonly maxLogprobs: number;
  /** Fields, as [message, field], without which an engine would drop what a feature asks for: older ones lack them. */
  readonly needsFields?: Readonly<Partial<Record<FeatureName, readonly [string, string]>>>;
  /** A pin to a rank is dropped by engines that have but one. */
  readonly pinsOnlyAmongRanks?: boolean;
  /** How one engine prefills for another; absent: not at all. */
  readonly pairing?: Pairing;
  readonly generate: GenerateRules;
  readonly embed?: EmbedRules;
  readonly control: ControlRules;
}

/** In the order of asking. */
export const DIALECTS: readonly Dialect[] = [
  {
    name: "vllm",
    proto: PROTOS.vllm,
    service: "vllm.grpc.engine.VllmEngine",
    probe: "HealthCheck",
    features: allBut(),
    maxLogprobs: 20,
    pairing: { kind: "relay" },
    generate: vllmGenerate,
    embed: { path: "/vllm.grpc.engine.VllmEngine/Embed", embedding: 1, promptTokens: 2, dimension: 3 },
    control: vllmControl,
  },
  {
    name: "sglang",
    proto: PROTOS.sglang,
    service: "sglang.grpc.scheduler.SglangScheduler",
    probe: "GetModelInfo",
    // No field for a seed; a rank is not read.
    features: allBut("seed", "dataParallelRank"),
    maxLogprobs: 0,
    pairing: { kind: "meeting", rooms: 2n ** 31n - 1n },
    generate: sglangGenerate,
    embed: {
      path: "/sglang.grpc.scheduler.SglangScheduler/Embed",
      embedding: 5,
      promptTokens: 6,
      dimension: 4,
    },
    control: sglangControl,
  },
  {
    name: "tokenspeed",
    proto: PROTOS.tokenspeed,
    service: "tokenspeed.grpc.scheduler.TokenSpeedScheduler",
    probe: "GetModelInfo",
    features: allBut("embed", "promptLogprobs"),
    maxLogprobs: 0,
    needsFields: {
      seed: ["SamplingParams", "sampling_seed"],
      dataParallelRank: ["GenerateRequest", "data_parallel_rank"],
    },
    pinsOnlyAmongRanks: true,
    pairing: { kind: "meeting", rooms: 2n ** 63n },
    generate: tokenspeedGenerate,
    control: tokenspeedControl,
  },
  {
    name: "trtllm",
    proto: PROTOS.trtllm,
    service: "trtllm.TrtllmService",
    probe: "GetModelInfo",
    // GetTokenizer and SubscribeKvEvents are declared, but not served.
    features: allBut(
      "embed",
      "logitBias",
      "dataParallelRank",
      "loads",
      "flushCache",
      "profile",
      "tokenizer",
      "kvEvents",
      "handover",
    ),
    maxLogprobs: 0,
    generate: trtllmGenerate,
    control: trtllmControl,
  },
  {
    name: "mlx",
    proto: PROTOS.mlx,
    service: "mlx.grpc.engine.MlxEngine",
    probe: "GetModelInfo",
    features:
      Feature.generate |
      Feature.logprobs |
      Feature.logitBias |
      Feature.seed |
      Feature.minP |
      Feature.frequencyPenalty |
      Feature.presencePenalty |
      Feature.ignoreEos |
      Feature.tokenizer,
    maxLogprobs: 0,
    generate: mlxGenerate,
    control: mlxControl,
  },
];

function allBut(...missing: readonly FeatureName[]): number {
  let bits = 0;
  for (const name of Object.keys(Feature) as FeatureName[]) if (!missing.includes(name)) bits |= Feature[name];
  return bits;
}

export const dialectByName = (name: string): Dialect | undefined => DIALECTS.find((dialect) => dialect.name === name);

/** Names of the dialects that the gateway speaks. */
export const SUPPORTED_DIALECTS: readonly string[] = DIALECTS.map(({ name }) => name);

/** What is taken for granted of an engine that told nothing yet. */
export function unknownFacts({ name, features, maxLogprobs }: Dialect): EngineFacts {
  return {
    dialect: name,
    protocol: "unknown",
    features,
    vocabSize: 0,
    contextLength: 0,
    maxLogprobs,
    dataParallelSize: 1,
    maxRunningRequests: 0,
    blockSize: 0,
    role: "regular",
    waitsForReasoning: undefined,
    labels: {},
  };
}
