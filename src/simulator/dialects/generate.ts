import { GrpcStatus } from "../../engines/grpc-error.ts";
import { type PlainMessage, protoCodec } from "../../protobuf/codec.ts";
import type { ProtoText } from "../../protobuf/proto-text.ts";
import { WireError } from "../../protobuf/wire-error.ts";
import { Generation, type GenerationSpec, type GenerationStyle, type GenerationWriter } from "../generation.ts";
import type { GrpcMethod } from "../grpc/server.ts";
import type { SimulatorHost } from "../host.ts";
import { logRequest } from "../log-request.ts";
import type { SimulatedModel } from "../model/simulated-model.ts";
import type { RequestedConstraint, Sampling } from "../sampling.ts";
import { UNREADABLE } from "./methods.ts";

/** Why a request is not run. */
export interface Refusal {
  readonly status: number;
  readonly details: string;
}

/** How a dialect reads and checks a GenerateRequest. */
export interface GenerateReader {
  /** Understands the request; defaults of the servicer are in it. */
  read(request: PlainMessage, host: SimulatorHost): GenerationSpec;
  refusal(request: PlainMessage, spec: GenerationSpec, host: SimulatorHost): Refusal | undefined;
  /** Details of INTERNAL once the engine behind the server is dead. */
  readonly dead: string;
}

/** Generate of the dialects whose requests are read by their proto text. */
export function generateCall(
  host: SimulatorHost,
  proto: ProtoText,
  reader: GenerateReader,
  style: GenerationStyle,
  writer: GenerationWriter,
): GrpcMethod {
  const codec = protoCodec(proto);
  return (call, message) => {
    let request: PlainMessage;
    try {
      request = codec.decode("GenerateRequest", message);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      call.end(GrpcStatus.INTERNAL, UNREADABLE);
      return;
    }
    const spec = reader.read(request, host);
    const dead = host.alive ? undefined : { status: GrpcStatus.INTERNAL, details: reader.dead };
    const refusal = reader.refusal(request, spec, host) ?? dead;
    if (refusal === undefined) new Generation(host, spec, call, style, writer);
    else {
      logRequest(host, spec, call, "refused", refusal.details);
      call.end(refusal.status, refusal.details);
    }
  };
}

/** A member that is a message, empty when it is absent. */
export function part(message: PlainMessage, name: string): PlainMessage {
  return (message[name] ?? {}) as PlainMessage;
}

/** A float as the shortest decimal that means the same, so that 0.7 is shown as 0.7; `otherwise` when absent. */
export function float(message: PlainMessage, name: string, otherwise = 0): number {
  const value = message[name];
  return typeof value === "number" ? Number(value.toPrecision(7)) : otherwise;
}

export function tokenIds(value: unknown): Uint32Array {
  return Uint32Array.from((value ?? []) as readonly number[]);
}

/** A `logit_bias` map, whatever the type of its keys. */
export function biases(value: unknown): [number, number][] {
  const map = (value ?? new Map()) as ReadonlyMap<unknown, number>;
  return [...map].map(([id, bias]) => [Number(id), Number(bias.toPrecision(7))]);
}

/** The member of a `constraint` oneof that is set. */
export function constraint(
  params: PlainMessage,
  kinds: Readonly<Record<string, RequestedConstraint["kind"]>>,
): RequestedConstraint | undefined {
  for (const [name, kind] of Object.entries(kinds))
    if (params[name] !== undefined) return { kind, value: String(params[name]), choices: [] };
  return undefined;
}

/** Sets what is there: members that stay undefined were absent. */
export function setOptional<K extends "maxTokens" | "seed" | "logprobs" | "promptLogprobs">(
  sampling: Sampling,
  name: K,
  value: unknown,
): void {
  if (typeof value === "number") sampling[name] = value;
}

/** What SGLang and engines made after it have against sampling numbers and prompts. */
export function usualProblem(s: Sampling, prompt: Uint32Array, model: SimulatedModel): string | undefined {
  if (s.temperature < 0) return `temperature must be non-negative, got ${s.temperature}.`;
  if (s.topP < 0 || s.topP > 1) return `top_p must be in (0, 1], got ${s.topP}.`;
  if (s.minP < 0 || s.minP > 1) return `min_p must be in [0, 1], got ${s.minP}.`;
  if (Math.abs(s.frequencyPenalty) > 2) return `frequency_penalty must be in [-2, 2], got ${s.frequencyPenalty}.`;
  if (Math.abs(s.presencePenalty) > 2) return `presence_penalty must be in [-2, 2], got ${s.presencePenalty}.`;
  if (s.repetitionPenalty < 0 || s.repetitionPenalty > 2)
    return `repetition_penalty must be in [0, 2], got ${s.repetitionPenalty}.`;
  if (s.maxTokens !== undefined && s.minTokens > s.maxTokens)
    return `min_new_tokens must be in [0, max_new_tokens(${s.maxTokens})], got ${s.minTokens}.`;
  for (const [id] of s.logitBias)
    if (id < 0 || id >= model.vocabSize) return `logit_bias must be in [0, ${model.vocabSize - 1}], got ${id}.`;
  if (prompt.length >= model.contextLength)
    return `The input (${prompt.length} tokens) is longer than the model's context length (${model.contextLength} tokens).`;
  for (const id of prompt)
    if (id >= model.vocabSize) return `The input_ids contains values greater than the vocab size (${model.vocabSize}).`;
  return undefined;
}

export function invalid(details: string | undefined): Refusal | undefined {
  return details === undefined ? undefined : { status: GrpcStatus.INVALID_ARGUMENT, details };
}

/** Constraints that can't be compiled, by their text or by what shall compile them. */
export function constraintProblem(
  { constraint: asked }: Sampling,
  backend: SimulatorHost["grammarBackend"] = "xgrammar",
): string | undefined {
  if (!asked) return undefined;
  const { kind, value } = asked;
  if (backend === "none") return "Grammar-based generation is not enabled (grammar_backend is none)";
  if (backend === "outlines" && kind !== "regex" && kind !== "json_schema")
    return `The grammar backend outlines does not support ${kind}`;
  if (kind === "regex") {
    try {
      new RegExp(value);
    } catch {
      return `Failed to compile the regex grammar: ${value}`;
    }
  } else if (kind === "json_schema" || kind === "structural_tag") {
    try {
      JSON.parse(value);
    } catch {
      return `Failed to compile the ${kind} grammar: not JSON`;
    }
  }
  return undefined;
}
