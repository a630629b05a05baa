/** The interaction object in each of its states, as JSON text: calls keep their arguments as the model wrote them. */
import type { TurnEnd, TurnItem } from "../shared/turn.ts";
import type { InteractionsRequest, Loose } from "./schema.ts";

/** Those that there are here. Google also has budget_exceeded, queued and requires_continuation, which @ai-sdk/google refuses. */
export type InteractionStatus = "in_progress" | "requires_action" | "completed" | "failed" | "cancelled" | "incomplete";

/** What of an interaction stays as it is from its first event to its last. */
export interface InteractionHead {
  /** `int_…`; empty where nothing is stored, as at Google. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly model: string;
  readonly serviceTier: string;
  /** The members that repeat the request. */
  readonly echo: Loose;
}

export interface InteractionError {
  /** The name of a gRPC status. */
  readonly code: string;
  readonly message: string;
}

/** What changes. */
export interface InteractionState {
  readonly status: InteractionStatus;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** JSON texts. */
  readonly steps: readonly string[];
  readonly usage?: object | undefined;
  readonly error?: InteractionError | undefined;
}

const ECHOED = [
  "system_instruction",
  "tools",
  "generation_config",
  "response_format",
  "response_mime_type",
  "response_modalities",
  "previous_interaction_id",
  "labels",
  "safety_settings",
  "webhook_config",
] as const;

export function echoOf(body: InteractionsRequest): Loose {
  const fields: Loose = body;
  return Object.fromEntries(
    ECHOED.filter((name) => fields[name] !== undefined && fields[name] !== null).map((name) => [name, fields[name]]),
  );
}

const time = (ms: number): string => new Date(ms).toISOString();

/** What events tell of it: all but its steps and the request. */
export function partialInteraction(
  head: InteractionHead,
  { status, updatedAt, usage, error }: InteractionState,
): Loose {
  return {
    id: head.id,
    object: "interaction",
    status,
    model: head.model,
    created: time(head.createdAt),
    updated: time(updatedAt),
    service_tier: head.serviceTier,
    ...(usage !== undefined && { usage }),
    ...(error !== undefined && { errors: [error] }),
  };
}

/** JSON text of the whole object. */
export function interactionText(head: InteractionHead, state: InteractionState): string {
  const members = JSON.stringify({ ...partialInteraction(head, state), ...head.echo }).slice(0, -1);
  return `${members},"steps":[${state.steps.join(",")}]}`;
}

const PARTIAL = ["id", "object", "status", "model", "created", "updated", "service_tier", "usage", "errors"] as const;

/** The same as `partialInteraction`, of an object that was stored. */
export const partialOf = (body: Loose): Loose =>
  Object.fromEntries(PARTIAL.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]));

const byModality = (tokens: number): object[] => (tokens > 0 ? [{ modality: "text", tokens }] : []);

/** Thoughts don't count among the tokens of the output. */
export function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: TurnEnd): object {
  const output = completionTokens - reasoningTokens;
  return {
    total_input_tokens: promptTokens,
    input_tokens_by_modality: byModality(promptTokens),
    total_cached_tokens: cachedTokens,
    cached_tokens_by_modality: byModality(cachedTokens),
    total_output_tokens: output,
    output_tokens_by_modality: byModality(output),
    total_tool_use_tokens: 0,
    tool_use_tokens_by_modality: [],
    total_thought_tokens: reasoningTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** JSON text of a step as its `step.start` tells it. */
export function openStep(item: TurnItem): string {
  if (item.kind === "text") return '{"type":"model_output","content":[]}';
  if (item.kind === "reasoning") return '{"type":"thought","summary":[]}';
  return JSON.stringify({ type: "function_call", id: item.callId, name: item.name, arguments: {} });
}

/** JSON text of a whole step. `signature`: of a thought; `hidesThoughts`: it comes alone. */
export function wholeStep(item: TurnItem, signature: string, hidesThoughts: boolean): string {
  const { text } = item;
  if (item.kind === "text") return `{"type":"model_output","content":[{"type":"text","text":${JSON.stringify(text)}}]}`;
  if (item.kind === "reasoning") {
    const summary = hidesThoughts ? "" : `{"type":"text","text":${JSON.stringify(text)}}`;
    return `{"type":"thought","signature":${JSON.stringify(signature)},"summary":[${summary}]}`;
  }
  const head = JSON.stringify({ type: "function_call", id: item.callId, name: item.name }).slice(0, -1);
  return `${head},"arguments":${argumentsText(text)}}`;
}

/** The arguments of a call, with their numbers as the model wrote them; of broken ones there is no object to show. */
function argumentsText(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? text : "{}";
  } catch {
    return "{}";
  }
}
