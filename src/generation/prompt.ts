import { setImmediate } from "node:timers/promises";
import { ContextLengthError, InvalidRequestError } from "../errors.ts";
import { atOnce, inTurns, type Steps, turn } from "../steps.ts";
import {
  type ChatTemplate,
  type RenderedPrompt,
  renderedPrompt,
  renderedPromptSteps,
  type Segment,
  type TemplateInput,
} from "../template/chat-template.ts";
import { prepareMessagesSteps } from "../template/prepare-messages.ts";
import { type EncodeOptions, type Tokenizer, TokenizerError } from "../tokenizer/tokenizer.ts";
import { type Conversation, listedTools } from "./conversation.ts";
import { templateMessagesSteps } from "./template-messages.ts";
import { type TemplateTraits, templateTraits } from "./template-traits.ts";
import { toolDeclaration } from "./tools/declaration.ts";

export type { RenderedPrompt } from "../template/chat-template.ts";
export { MAX_TEXT, TemplateTextLimitError } from "../template/chat-template.ts";

/** What goes to an engine: token ids, and the text they came from. */
export interface Prompt {
  readonly text: string;
  readonly tokenIds: Uint32Array;
}

/** What encodes a prompt. */
export interface PromptEncoder {
  readonly tokenizer: Tokenizer;
  /** Ids of a text that takes long, from another thread. */
  encodeLong(text: string, options: EncodeOptions): Promise<Uint32Array>;
}

/**
 * Token ids of a prompt's text. One that cannot fit the context (in tokens; 0: unknown) is refused before it costs seconds to encode.
 * `param`: the field that it came from; `options`: of a prompt of one piece. Throws GatewayErrors.
 */
export async function encodePrompt(
  { text, segments }: RenderedPrompt,
  encoder: PromptEncoder,
  contextLength: number,
  param = "messages",
  options: EncodeOptions = {},
): Promise<Uint32Array> {
  const { tokenizer } = encoder;
  if (contextLength > 0 && text.length > contextLength * tokenizer.longestToken) {
    throw new ContextLengthError(
      `This model's maximum context length is ${contextLength} tokens. However, the prompt has ${text.length} characters, which is more than fits. Please shorten the ${param}.`,
      { param },
    );
  }
  try {
    if (segments !== undefined) return await encodeSegments(segments, encoder);
    const ids = tokenizer.encodeSoon(text, options);
    if (ids !== undefined) return ids;
    await setImmediate(); // rendering it has taken milliseconds, and so will sending it
    return await encoder.encodeLong(text, options);
  } catch (error) {
    if (!(error instanceof TokenizerError)) throw error;
    throw new InvalidRequestError(`The ${param} cannot be tokenized: ${error.message}`, { param, cause: error });
  }
}

const SPECIAL: EncodeOptions = {};
const PLAIN: EncodeOptions = { specialAsText: true };
/** UTF-16 units that are encoded before others have their turn. */
const SLICE = 1 << 16;

async function encodeSegments(
  segments: readonly Segment[],
  { tokenizer, encodeLong }: PromptEncoder,
): Promise<Uint32Array> {
  const parts: Uint32Array[] = [];
  let [count, sinceTurn] = [0, 0];
  for (const { text, special } of segments) {
    const options = special ? SPECIAL : PLAIN;
    const ids = tokenizer.encodeSoon(text, options) ?? (await encodeLong(text, options));
    parts.push(ids);
    count += ids.length;
    sinceTurn += text.length;
    if (sinceTurn < SLICE) continue;
    await setImmediate();
    sinceTurn = 0;
  }
  const all = new Uint32Array(count);
  let at = 0;
  for (const ids of parts) {
    all.set(ids, at);
    at += ids.length;
  }
  return all;
}

/**
 * A conversation's prompt, in the form that the template wants: see `TemplateTraits`. `now`: the clock of templates.
 * Throws InvalidRequestError; of the class ChatTemplateRefusal with the template's own words.
 */
export function renderPrompt(
  conversation: Conversation,
  template: ChatTemplate,
  options: { readonly now?: Date } = {},
): RenderedPrompt {
  return renderedPrompt(template, atOnce(templateInput(conversation, template, options)));
}

/** Rendering a conversation of more messages, calls and parts of contents takes milliseconds. */
export const MANY_MESSAGES = 1000;
/** The same of what its tools, documents and variables hold: values, and pieces of text of so many UTF-16 units. */
const MANY_VALUES = 4000;
const PIECE = 32;

/** Does the rendering of a conversation take milliseconds? */
export function isLong(conversation: Conversation): boolean {
  const { messages, tools, documents, responseFormat, templateVariables } = conversation;
  if (messages.length > MANY_MESSAGES) return true;
  let inside = messages.length;
  let weight = 0;
  for (const { content, toolCalls = [] } of messages) {
    inside += toolCalls.length + (typeof content === "string" ? 0 : content.length);
    for (const call of toolCalls) weight += call.arguments.length / PIECE;
  }
  if (inside > MANY_MESSAGES || weight > MANY_VALUES) return true;
  const left: unknown[] = [documents, responseFormat, templateVariables, ...tools];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === "string") weight += value.length / PIECE;
    else if (typeof value === "object" && value !== null)
      for (const inner of valuesIn(value)) {
        if (++weight > MANY_VALUES) return true;
        left.push(inner);
      }
    if (weight > MANY_VALUES) return true;
  }
  return false;
}

/** `Object.values` of a long list takes long. */
const valuesIn = (value: object): Iterable<unknown> =>
  Array.isArray(value) ? value : value instanceof Map ? value.values() : Object.values(value);

/** The same as `renderPrompt` for a long one, in turns with other work of the thread. */
export async function renderInTurns(
  conversation: Conversation,
  template: ChatTemplate,
  options: { readonly now?: Date } = {},
): Promise<RenderedPrompt> {
  await turn(); // reading it has taken milliseconds
  const prompt = await inTurns(renderedSteps(conversation, template, options));
  await turn();
  return prompt;
}

function* renderedSteps(
  conversation: Conversation,
  template: ChatTemplate,
  options: { readonly now?: Date },
): Steps<RenderedPrompt> {
  const input = yield* templateInput(conversation, template, options);
  yield;
  return yield* renderedPromptSteps(template, input);
}

function* templateInput(
  conversation: Conversation,
  template: ChatTemplate,
  { now }: { readonly now?: Date },
): Steps<TemplateInput> {
  const { addGenerationPrompt, continueFinalMessage, documents, template: name, systemInPlace = false } = conversation;
  const tools = listedTools(conversation);
  const traits = traitsFor(conversation, template);
  const shown = yield* templateMessagesSteps(conversation.messages, traits, { systemInPlace });
  return {
    messages: yield* prepareMessagesSteps(shown, { keepNullContent: template.needsNullContent }),
    addGenerationPrompt,
    continueFinalMessage,
    variables: templateVariables(conversation, traits),
    ...(givesTools(conversation) && { tools: tools.map(toolDeclaration) }),
    ...(documents !== undefined && { documents }),
    ...(name !== undefined && { template: name }),
    ...(now !== undefined && { now }),
  };
}

/** How the template that a conversation is rendered with wants its messages. */
export function traitsFor(conversation: Conversation, template: ChatTemplate): TemplateTraits {
  return templateTraits(template, conversation.template, givesTools(conversation));
}

/** Is the template given a list of tools? An empty one is a list as well. */
const givesTools = (conversation: Conversation): boolean =>
  listedTools(conversation).length > 0 || conversation.emptyToolList === true;

/** The conversation with thinking switched off, whatever it asked for; undefined where its template has no switch. */
export function withoutThinking(conversation: Conversation, template: ChatTemplate): Conversation | undefined {
  const { thinkingKey } = traitsFor(conversation, template);
  if (thinkingKey === undefined) return undefined;
  const templateVariables = new Map(entriesOf(conversation.templateVariables)).set(thinkingKey, false);
  return { ...conversation, templateVariables };
}

const entriesOf = (variables: Conversation["templateVariables"]): Iterable<[string, unknown]> =>
  variables instanceof Map ? variables : Object.entries(variables);

/**
 * The variables of an effort; `key`: the one that switches thinking. Only the lowest efforts touch that, so that for the others the
 * template's own default stays.
 */
export function thinkingSwitch(
  effort: string | number,
  key: TemplateTraits["thinkingKey"],
): readonly (readonly [name: string, value: unknown])[] {
  const isOff = effort === "none" || effort === "minimal" || effort === 0;
  const given = ["reasoning_effort", effort] as const;
  return isOff && key !== undefined ? [given, [key, false]] : [given];
}

/** Some formats (Kimi K3) tell the model of a choice of tools and a format of the answer. */
function templateVariables(conversation: Conversation, { thinkingKey }: TemplateTraits): ReadonlyMap<string, unknown> {
  const { reasoningEffort, responseFormat, thinking, toolChoice, tools } = conversation;
  const variables = new Map<string, unknown>();
  if (reasoningEffort !== undefined) {
    for (const [name, value] of thinkingSwitch(reasoningEffort, thinkingKey)) variables.set(name, value);
  }
  if (thinking !== undefined && thinkingKey !== undefined) variables.set(thinkingKey, thinking);
  if (tools.length > 0 && toolChoice.mode !== "auto") variables.set("tool_choice", toolChoice.mode);
  if (responseFormat !== undefined) variables.set("response_format", responseFormat);
  for (const [name, value] of entriesOf(conversation.templateVariables)) variables.set(name, value);
  return variables;
}
