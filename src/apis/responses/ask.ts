/** A request of Responses in the terms of no API: its conversation, and what is asked of the answer. */
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Conversation } from "../../generation/conversation.ts";
import { rawMemberItemsSteps } from "../../generation/raw-members.ts";
import { Turns } from "../../generation/turns.ts";
import { atOnce, type Steps } from "../../steps.ts";
import type { TextAsk } from "../shared/call.ts";
import { constraintExtensions, onlyOne } from "../shared/constraint.ts";
import type { SamplingAsk } from "../shared/sampling.ts";
import { dispatchAsk, extensionAsk, refuseUnsupported } from "../shared/sampling-fields.ts";
import { isObject, lossless, losslessList, losslessMember } from "../shared/tools.ts";
import { type AskedFormat, askedFormat } from "./format.ts";
import { inputToTurns } from "./input.ts";
import { conversationId } from "./object.ts";
import type { Loose, PromptRequest, ResponsesRequest } from "./schema.ts";
import { type ResponseTools, responseToolChoice, responseTools, toolsOfItems } from "./tools.ts";

const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });

/** Refuses what contradicts itself, or leaves nothing to answer. Throws InvalidRequestError. */
export function checkPrompt(body: PromptRequest): void {
  const { input, previous_response_id: previous, prompt } = body;
  const hasContext = Boolean(previous) || conversationId(body) !== undefined;
  if (previous && conversationId(body) !== undefined)
    throw wrong("previous_response_id", "previous_response_id and conversation exclude each other");
  if (prompt) throw new UnsupportedError("prompt: this server keeps no prompts", { param: "prompt" });
  if (!hasContext && (input === undefined || input === null || input.length === 0))
    throw wrong("input", "Missing required parameter: 'input'");
}

/** The same for a request that is to be answered. */
export function checkRequest(body: ResponsesRequest): void {
  checkPrompt(body);
  if (body.background === true && body.store === false) throw wrong("background", "background needs store to be true");
  refuseUnsupported(body);
}

export interface AskedConversation {
  readonly conversation: Conversation;
  readonly tools: ResponseTools;
  readonly format: AskedFormat | undefined;
  /** Types of items and tools that were left out. */
  readonly left: ReadonlySet<string>;
}

export interface ConversationSource {
  /** Those before the request's own, oldest first, without references. */
  readonly context: readonly Loose[];
  /** The request's own, without references. */
  readonly items: string | readonly Loose[];
  /** The field that they are in, for errors; `input` if none is named. */
  readonly at?: string;
  /** The text of the request, so that prompts print numbers and the order of keys as sent. */
  readonly raw: string | undefined;
  /** The text that a sealed blob of ours stands for. */
  readonly open: (blob: string) => string | undefined;
}

/**
 * The conversation of a request. Instructions come first, and are of this request only; items may change the format and the effort, and
 * add tools. Throws InvalidRequestErrors.
 */
export const askedConversation = (body: AskBody, source: ConversationSource): AskedConversation =>
  atOnce(askedConversationSteps(body, source));

type AskBody = PromptRequest & { readonly chat_template_kwargs?: Loose | null | undefined };

/** The same in steps. */
export function* askedConversationSteps(
  body: AskBody,
  { context, items, at = "input", raw, open }: ConversationSource,
): Steps<AskedConversation> {
  const own = typeof items === "string" ? [] : items;
  const all = [...context, ...own];
  const sent = body.tools ?? [];
  const asSent = (sent.length > 0 ? yield* losslessList(raw, "tools") : undefined) ?? sent;
  const added = toolsOfItems(all);
  const tools = responseTools([...sent, ...added], [...asSent, ...added]);
  const turns = new Turns();
  if (body.instructions) turns.system(body.instructions);
  const left = new Set([...(yield* inputToTurns(context, turns, { tools, open }, "context")), ...tools.ignored]);
  for (const type of yield* inputToTurns(items, turns, { tools, open, itemText: itemTexts(raw) }, at)) left.add(type);
  const update = lastUpdates(all);
  const format = update.format === undefined ? yield* ownFormat(body, raw) : askedFormat(update.format);
  const effort = update.effort ?? body.reasoning?.effort ?? undefined;
  const variables = body.chat_template_kwargs;
  return {
    tools,
    format,
    left,
    conversation: {
      messages: turns.messages,
      tools: tools.definitions,
      toolChoice: responseToolChoice(body.tool_choice, tools),
      parallelToolCalls: body.parallel_tool_calls !== false,
      addGenerationPrompt: true,
      continueFinalMessage: false,
      systemInPlace: true,
      ...(effort !== undefined && { reasoningEffort: effort }),
      ...(format !== undefined && { responseFormat: format.responseFormat }),
      templateVariables: variables ? yield* lossless<Loose>(raw, "chat_template_kwargs", variables) : {},
    },
  };
}

/** Texts of the items of the request's input, read when the first is asked for. */
function itemTexts(raw: string | undefined): (index: number) => Steps<string | undefined> {
  let texts: readonly string[] | undefined;
  return function* (index) {
    texts ??= raw === undefined ? [] : yield* rawMemberItemsSteps(raw, "input");
    return texts[index];
  };
}

function* ownFormat({ text }: PromptRequest, raw: string | undefined): Steps<AskedFormat | undefined> {
  const member = text?.format && raw !== undefined ? yield* losslessMember(raw, "text") : undefined;
  return askedFormat(text?.format, member instanceof Map ? (member.get("format") as unknown) : undefined);
}

/** What the last `configuration_update` items say. */
function lastUpdates(items: readonly Loose[]): { readonly format?: Loose; readonly effort?: string } {
  let found: { readonly format?: Loose; readonly effort?: string } = {};
  for (const { type, text, reasoning } of items) {
    if (type !== "configuration_update") continue;
    const format = isObject(text) ? text["format"] : undefined;
    const effort = isObject(reasoning) ? reasoning["effort"] : undefined;
    found = { ...found, ...(isObject(format) && { format }), ...(typeof effort === "string" && { effort }) };
  }
  return found;
}

/** What a request asks of the answer to a conversation. Throws InvalidRequestErrors. */
export function textAsk(body: ResponsesRequest, { conversation, format }: AskedConversation, stream: boolean): TextAsk {
  const own = format?.constraint;
  const constraint = onlyOne([...(own === undefined ? [] : [own]), ...constraintExtensions(body)], "text.format");
  return {
    model: body.model,
    conversation,
    sampling: sampling(body),
    constraint,
    constraintParam: own === undefined ? undefined : "text.format",
    tooLong: "clamp",
    param: "input",
    stream,
    ...dispatchAsk(body),
  };
}

/** Logprobs are asked for by `include`; a number of alternatives says the same. */
export const wantsLogprobs = ({ include, top_logprobs: top }: ResponsesRequest): boolean =>
  include?.includes("message.output_text.logprobs") === true || (top ?? 0) > 0;

function sampling(body: ResponsesRequest): SamplingAsk {
  return {
    ...extensionAsk(body),
    temperature: body.temperature,
    topP: body.top_p,
    maxTokens: body.max_output_tokens,
    stop: typeof body.stop === "string" ? [body.stop] : body.stop,
    logprobs: wantsLogprobs(body) ? (body.top_logprobs ?? 0) : undefined,
  };
}
