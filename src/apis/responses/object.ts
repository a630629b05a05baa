/** The response object, with every key that OpenResponses requires, in each of its states. */
import type { TurnEnd } from "../shared/turn.ts";
import type { ResponseFailure } from "./errors.ts";
import type { Loose, ResponsesRequest } from "./schema.ts";
import { shownTools } from "./tools.ts";

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** What of a response stays as it is from its first event to its last. */
export interface ResponseHead {
  readonly id: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  /** The members that come from the request. */
  readonly fields: Loose;
}

/** What changes. */
export interface ResponseState {
  readonly status: ResponseStatus;
  readonly output: readonly Loose[];
  readonly error?: ResponseFailure | undefined;
  readonly incomplete?: "max_output_tokens" | undefined;
  readonly usage?: Loose | undefined;
  /** Unix time in seconds. */
  readonly completedAt?: number | undefined;
}

/** What of the model is used where the request says nothing. */
export interface ModelDefaults {
  /** Under the names of generation_config. */
  readonly sampling: Readonly<Record<string, number>>;
}

export const conversationId = ({ conversation }: Pick<ResponsesRequest, "conversation">): string | undefined =>
  typeof conversation === "string" ? conversation : conversation?.id;

/** The members of a response that repeat its request, or say what was taken in its place. */
export function requestFields(body: ResponsesRequest, { sampling }: ModelDefaults): Loose {
  const conversation = conversationId(body);
  const { format, verbosity } = body.text ?? {};
  return {
    model: body.model,
    instructions: body.instructions ?? null,
    previous_response_id: body.previous_response_id ?? null,
    conversation: conversation === undefined ? null : { id: conversation },
    tools: shownTools(body.tools ?? []),
    tool_choice: body.tool_choice ?? "auto",
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    truncation: body.truncation ?? "disabled",
    text: { format: format ?? { type: "text" }, ...(verbosity && { verbosity }) },
    reasoning: {
      effort: body.reasoning?.effort ?? null,
      summary: body.reasoning?.summary ?? body.reasoning?.generate_summary ?? null,
    },
    temperature: body.temperature ?? sampling["temperature"] ?? 1,
    top_p: body.top_p ?? sampling["top_p"] ?? 1,
    presence_penalty: body.presence_penalty ?? 0,
    frequency_penalty: body.frequency_penalty ?? 0,
    top_logprobs: body.top_logprobs ?? 0,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    store: body.store ?? true,
    background: body.background ?? false,
    service_tier: body.service_tier ?? "default",
    metadata: body.metadata ?? {},
    safety_identifier: body.safety_identifier ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    user: body.user ?? null,
  };
}

/** The object that clients see. */
export const responseObject = (head: ResponseHead, state: ResponseState): Loose => ({
  ...stateFields(head, state),
  ...head.fields,
});

/** Its JSON text, of `fields` as JSON text: those may be long, and are the same in several events. */
export const responseText = (head: ResponseHead, fields: string, state: ResponseState): string =>
  `${JSON.stringify(stateFields(head, state)).slice(0, -1)},${fields.slice(1)}`;

function stateFields({ id, createdAt }: ResponseHead, state: ResponseState): Loose {
  const { status, output, error, incomplete, usage, completedAt } = state;
  return {
    id,
    object: "response",
    created_at: createdAt,
    completed_at: completedAt ?? null,
    status,
    error: error ?? null,
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    output,
    usage: usage ?? null,
  };
}

export function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: TurnEnd): Loose {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}
