/** The parts of an answer that its stream and its whole have in common. */
import type { TurnEnd, TurnItem } from "../shared/turn.ts";

/** What is known of an answer before the engine has said anything. */
export interface MessageAnswer {
  /** `msg_…` */
  readonly id: string;
  /** As the client named it. */
  readonly model: string;
  /** Tokens of the prompt by our own count. */
  readonly promptTokens: number;
  /** The client gets signatures in the place of thoughts. */
  readonly omitsThinking: boolean;
  /** The signature of a thinking block, which proves the thoughts, or holds those that are left out. */
  sign(thoughts: string): string;
  /** The request asked for edits of its context, of which none are made here. */
  readonly tellsEdits: boolean;
}

export type StopReason = "end_turn" | "max_tokens" | "stop_sequence" | "tool_use" | "model_context_window_exceeded";

export interface Stop {
  readonly reason: StopReason;
  readonly sequence: string | null;
}

/** @param calls complete ones. An answer that was cut says so, whatever it holds: its last call may be missing. */
export function stopOf({ reason, matchedStop, isClamped }: TurnEnd, calls: number): Stop {
  if (reason === "length")
    return { reason: isClamped ? "model_context_window_exceeded" : "max_tokens", sequence: null };
  if (calls > 0) return { reason: "tool_use", sequence: null };
  // a stop token is an end like any other
  if (typeof matchedStop === "string") return { reason: "stop_sequence", sequence: matchedStop };
  return { reason: "end_turn", sequence: null };
}

/** Tokens of the input: those that were read from the cache do not count among `input_tokens`. */
const inputCounts = (promptTokens: number, cachedTokens: number) => ({
  input_tokens: Math.max(0, promptTokens - cachedTokens),
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cachedTokens,
});

/** `usage` of a message. `thinkingTokens`: undefined where nothing was generated yet. */
export const messageUsage = (
  promptTokens: number,
  cachedTokens: number,
  output = 0,
  thinkingTokens?: number,
): object => ({
  ...inputCounts(promptTokens, cachedTokens),
  cache_creation: null,
  output_tokens: output,
  output_tokens_details: thinkingTokens === undefined ? null : { thinking_tokens: thinkingTokens },
  server_tool_use: null,
  service_tier: "standard",
  inference_geo: null,
  speed: null,
});

/** `usage` of `message_delta`. */
export const deltaUsage = ({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: TurnEnd): object => ({
  ...inputCounts(promptTokens, cachedTokens),
  output_tokens: completionTokens,
  output_tokens_details: { thinking_tokens: reasoningTokens },
  server_tool_use: null,
});

/** JSON text of a message; `content`: that of its blocks. */
export function messageText(
  { id, model, tellsEdits }: MessageAnswer,
  content: readonly string[],
  stop: Stop | undefined,
  usage: object,
): string {
  const head = JSON.stringify({ id, type: "message", role: "assistant", model }).slice(0, -1);
  const tail = JSON.stringify({
    stop_reason: stop?.reason ?? null,
    stop_sequence: stop?.sequence ?? null,
    stop_details: null,
    container: null,
    diagnostics: null,
    ...(tellsEdits && { context_management: { applied_edits: [] } }),
    usage,
  }).slice(1);
  return `${head},"content":[${content.join(",")}],${tail}`;
}

const CALLER = { type: "direct" } as const;

/** JSON text of a block without its content, as a stream opens it. `id`: of the block of a call. */
export function openBlock(item: TurnItem, id: string): string {
  if (item.kind === "text") return JSON.stringify({ type: "text", text: "", citations: null });
  if (item.kind === "reasoning") return JSON.stringify({ type: "thinking", thinking: "", signature: "" });
  return JSON.stringify({ type: "tool_use", id, name: item.name, input: {}, caller: CALLER });
}

/** JSON text of a whole block. */
export function wholeBlock(item: TurnItem, id: string, answer: MessageAnswer): string {
  const { text } = item;
  if (item.kind === "text") return JSON.stringify({ type: "text", text, citations: null });
  if (item.kind === "reasoning") {
    const thinking = answer.omitsThinking ? "" : text;
    return JSON.stringify({ type: "thinking", thinking, signature: answer.sign(text) });
  }
  const head = JSON.stringify({ type: "tool_use", id, name: item.name }).slice(0, -1);
  return `${head},"input":${inputText(text)},"caller":${JSON.stringify(CALLER)}}`;
}

/** The arguments of a call on one line, with their numbers as the model wrote them; of broken ones there is no object to show. */
function inputText(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    // in strings line ends are escaped: those that are not separate tokens
    return typeof value === "object" && value !== null && !Array.isArray(value) ? text.replace(/[\r\n]+/g, " ") : "{}";
  } catch {
    return "{}";
  }
}
