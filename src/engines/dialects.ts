/** The engine dialects that the gateway speaks. */
import type { ProtoText } from "../protobuf/proto-text.ts";
import type { ControlRules } from "./control-rules.ts";
import type { EmbedRules } from "./embed.ts";
import type { EngineFacts } from "./facts.ts";
import { Feature } from "./features.ts";
import type { GenerateRules } from "./generate-rules.ts";
import { PROTOS } from "./protos.ts";
import { vllmControl } from "./vllm/info.ts";
import { vllmGenerate } from "./vllm/rules.ts";

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
    features: allBut("none"),
    maxLogprobs: 20,
    generate: vllmGenerate,
    embed: { path: "/vllm.grpc.engine.VllmEngine/Embed", embedding: 1, promptTokens: 2, dimension: 3 },
    control: vllmControl,
  },
];

function allBut(...missing: readonly (keyof typeof Feature | "none")[]): number {
  let bits = 0;
  for (const [name, bit] of Object.entries(Feature)) if (!missing.includes(name as keyof typeof Feature)) bits |= bit;
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
