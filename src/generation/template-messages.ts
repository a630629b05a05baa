/** Messages of a conversation in the form that a model's template wants. */
import { createHash } from "node:crypto";
import { InvalidRequestError } from "../errors.ts";
import { atOnce, PIECE_ITEMS, PIECE_TEXT, type Steps } from "../steps.ts";
import { losslessSteps, parseLossless } from "../template/lossless-json.ts";
import { plainValue } from "../template/plain-value.ts";
import type { MessageData } from "../template/prepare-messages.ts";
import { oneCallEach, type Placed, shownContent, textInResults } from "./call-turns.ts";
import { type Content, contentText, type Message, type ToolCall } from "./conversation.ts";
import { GrowingParts } from "./growing-parts.ts";
import type { CallTraits, ContentRole, TemplateTraits } from "./template-traits.ts";
import { inTurns } from "./turn-order.ts";

/**
 * The messages as the template is to see them, before `prepareMessages`. `systemInPlace`: see `Conversation`. Throws InvalidRequestError
 * for calls whose arguments are no JSON where the template needs an object.
 */
export const templateMessages = (
  messages: readonly Message[],
  traits: TemplateTraits,
  options: Options = {},
): MessageData[] => atOnce(templateMessagesSteps(messages, traits, options));

interface Options {
  readonly systemInPlace?: boolean;
}

/** The same in steps. */
export function* templateMessagesSteps(
  messages: readonly Message[],
  traits: TemplateTraits,
  { systemInPlace = false }: Options,
): Steps<MessageData[]> {
  const ids = new CallIds(traits.calls?.ids ?? "any");
  const ordered = arranged(messages, traits, systemInPlace);
  if (ordered.length > PIECE_ITEMS) yield;
  const shown: MessageData[] = [];
  for (const { message, at, firstCall = 0 } of fitting(ordered, traits)) {
    if (shown.length % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    const { role, name, reasoning, toolCalls = [] } = message;
    const calls: unknown[] = [];
    for (const [i, call] of toolCalls.entries()) {
      if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
      const param = `messages[${at}].tool_calls[${firstCall + i}].function.arguments`;
      const isLong = call.arguments.length > PIECE_TEXT;
      const called = { name: call.name, arguments: yield* callArguments(call, traits.calls, param) };
      const shownCall = { id: ids.next(call), type: "function", function: called };
      calls.push(toolCalls.length > PIECE_ITEMS && !isLong ? plainValue(shownCall) : shownCall); // what comes next takes a message in one go
    }
    const answered = role === "tool" ? ids.answered(message) : undefined;
    const shownName = name ?? (traits.namesResults ? answered?.name : undefined);
    const content = templateContent(shownContent(message), role === "developer" ? "system" : role, traits);
    shown.push({
      role,
      content: content === "" && calls.length > 0 ? emptyContent(message, traits.calls) : content,
      ...(shownName !== undefined && { name: shownName }),
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(answered !== undefined && { tool_call_id: answered.id }),
    });
  }
  return shown;
}

/** Calls, results and turns as the template takes them. */
function fitting(placed: readonly Placed[], { calls, userBehindResults, turns }: TemplateTraits): readonly Placed[] {
  const single = calls?.many === false ? oneCallEach(placed) : placed;
  return inTurns(userBehindResults ? single : textInResults(single), turns);
}

/**
 * Developer messages become system messages where the template knows no developer. Where it must be so, both go to the front as one, or,
 * if they are to stay in place, those behind the first others become user text.
 */
function arranged(messages: readonly Message[], traits: TemplateTraits, inPlace: boolean): Placed[] {
  const placed = messages.map((message, at): Placed => {
    const isUnknown = message.role === "developer" && !traits.developer;
    return { message: isUnknown ? { ...message, role: "system" } : message, at };
  });
  if (inPlace) return traits.systemInPlace ? betweenRepeatsTagged(placed, traits.turns) : inFrontOrTagged(placed);
  const [first, ...others] = placed.filter(isSystem);
  if (traits.systemAnywhere || first === undefined || (others.length === 0 && placed[0] === first)) return placed;
  return [asOne(first, others), ...placed.filter((each) => !isSystem(each))];
}

const isSystem = ({ message: { role } }: Placed): boolean => role === "system" || role === "developer";

function asOne(first: Placed, others: readonly Placed[]): Placed {
  const content = [first, ...others].map(({ message }) => contentText(message.content)).join("\n\n");
  return { ...first, message: { ...first.message, content } };
}

/** Those in front stay, as one; later ones become text of the user. */
function inFrontOrTagged(placed: readonly Placed[]): Placed[] {
  const end = placed.findIndex((each) => !isSystem(each));
  const leading = end < 0 ? placed : placed.slice(0, end);
  const [first, ...others] = leading;
  const front = first === undefined ? [] : [others.length === 0 ? first : asOne(first, others)];
  return [...front, ...tagged(placed.slice(leading.length), isSystem)];
}

/**
 * Those between two messages of one role become text of the user where the template takes no such two: they will be one message, and
 * nothing can stand within it. What was in front of it would come before what the model has seen without it.
 */
function betweenRepeatsTagged(placed: readonly Placed[], { repeats }: TemplateTraits["turns"]): Placed[] {
  if (repeats.user && repeats.assistant) return [...placed];
  const behind = othersBehind(placed);
  let before: Message | undefined;
  const isBetween = (each: Placed, at: number): boolean => {
    if (!isSystem(each)) {
      before = each.message;
      return false;
    }
    const next = behind[at];
    if (before === undefined || before.role !== next?.role || before.toolCalls?.length || next.toolCalls?.length)
      return false;
    return (before.role === "user" && !repeats.user) || (before.role === "assistant" && !repeats.assistant);
  };
  return tagged(placed, isBetween);
}

/** Of each place the first message from there on that is no system message. */
function othersBehind(placed: readonly Placed[]): readonly (Message | undefined)[] {
  const behind: (Message | undefined)[] = new Array(placed.length);
  let next: Message | undefined;
  for (let at = placed.length - 1; at >= 0; at--) {
    const each = placed[at]!;
    if (!isSystem(each)) next = each.message;
    behind[at] = next;
  }
  return behind;
}

/**
 * A system message that is to be text goes to the end of the user message before it, else to the beginning of the one behind it, else it is
 * one of its own. It depends on its neighbours alone, so that a conversation that grows keeps the beginning of its prompt.
 */
function tagged(placed: readonly Placed[], isText: (each: Placed, at: number) => boolean): Placed[] {
  const out: Placed[] = [];
  const growing = new GrowingParts();
  /** Of system messages that wait for the user message behind them. */
  let waiting: { readonly tagged: string; readonly at: number } | undefined;
  for (const [index, each] of placed.entries()) {
    const { message, at } = each;
    if (isText(each, index)) {
      const text = `<system>\n${contentText(message.content)}\n</system>`;
      const last = out.at(-1);
      if (waiting !== undefined) waiting = { tagged: `${waiting.tagged}\n\n${text}`, at: waiting.at };
      else if (last?.message.role === "user") out[out.length - 1] = withText(last, text, "behind", growing);
      else waiting = { tagged: text, at };
      continue;
    }
    if (waiting !== undefined && message.role !== "user") out.push(ownUser(waiting));
    out.push(
      waiting !== undefined && message.role === "user" ? withText(each, waiting.tagged, "before", growing) : each,
    );
    waiting = undefined;
  }
  if (waiting !== undefined) out.push(ownUser(waiting));
  return out;
}

const ownUser = ({ tagged, at }: { readonly tagged: string; readonly at: number }): Placed => ({
  message: { role: "user", content: tagged },
  at,
});

function withText({ message, at }: Placed, text: string, where: "before" | "behind", growing: GrowingParts): Placed {
  const { content } = message;
  const isFirst = where === "before";
  if (typeof content === "string") {
    const both = isFirst ? `${text}\n\n${content}` : `${content}\n\n${text}`;
    return { message: { ...message, content: content === "" ? text : both }, at };
  }
  const part = { type: "text", text } as const;
  return { message: { ...message, content: isFirst ? [part, ...content] : growing.with(content, [part]) }, at };
}

function templateContent(content: Content, role: ContentRole, traits: TemplateTraits): Content {
  const takes = traits.content[role];
  if (typeof content !== "string") return takes.parts && content.length > 0 ? content : contentText(content);
  return takes.text || content === "" ? content : [{ type: "text", text: content }];
}

/** As the client sent it, unless the template fails on it or writes no calls beside it. */
function emptyContent({ withoutContent }: Message, calls: CallTraits | undefined): null | "" {
  if (calls === undefined) return "";
  return withoutContent === true ? (calls.besideNull ? null : "") : calls.besideEmpty ? "" : null;
}

/** Those of a call, read in steps where they are long. */
function* callArguments({ arguments: text }: ToolCall, traits: CallTraits | undefined, param: string): Steps<unknown> {
  if (traits?.arguments === "text") return text.trim() === "" ? "{}" : text;
  if (text.trim() === "") return new Map();
  try {
    return (text.length > PIECE_TEXT ? yield* losslessSteps(text) : parseLossless(text)) ?? new Map();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // What a model broke off stays in its history, where the template allows it.
    if (traits === undefined || traits.takesText) return text;
    throw new InvalidRequestError(
      `${param} is not valid JSON, which this model's chat template needs: ${error.message}`,
      { param, cause: error },
    );
  }
}

interface NamedCall {
  readonly given: string;
  readonly id: string;
  readonly name: string;
  /** A result without an id was taken for its own. */
  isAnswered?: true;
}

/** Ids of calls as the family writes them, and the calls that results belong to. */
class CallIds {
  private count = 0;
  // Calls that wait for their results, and others among them: in their order; by their function; by the ids of the request.
  private readonly all: Waiting = { calls: [], first: 0 };
  private readonly byName = new Map<string, Waiting>();
  private readonly byId = new Map<string, NamedCall[]>();

  constructor(private readonly form: CallTraits["ids"]) {}

  /** The id of the conversation's next call. */
  next({ id: given, name }: ToolCall): string {
    const index = this.count++;
    const id = this.written(given, name, index);
    const call: NamedCall = { given, id, name };
    this.all.calls.push(call);
    valueAt(this.byName, name, (): Waiting => ({ calls: [], first: 0 })).calls.push(call);
    valueAt(this.byId, given, (): NamedCall[] => []).push(call);
    return id;
  }

  /**
   * The call that a tool message answers: the last of its id, and without an id the first that waits, of its name if it has one; of an id
   * or name that no call has, the message's own.
   */
  answered({ toolCallId, name }: Message): { readonly id: string; readonly name?: string } | undefined {
    if (toolCallId === undefined) {
      const call = firstWaiting(name === undefined ? this.all : this.byName.get(name));
      if (call !== undefined) call.isAnswered = true;
      return call;
    }
    const same = this.byId.get(toolCallId);
    while (same?.at(-1)?.isAnswered) same.pop();
    return same?.at(-1) ?? { id: this.fitting(toolCallId) };
  }

  private written(given: string, name: string, index: number): string {
    if (this.form === "kimi") return given.startsWith(`functions.${name}:`) ? given : `functions.${name}:${index}`;
    if (this.form === "nine") return nineOf(given === "" ? `${name}:${index}` : given);
    return this.fitting(given === "" ? `call_${index}` : given);
  }

  private fitting(id: string): string {
    return this.form === "nine" || (this.form === "nineOrMore" && [...id].length < 9) ? nineOf(id) : id;
  }
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Nine letters and digits for an id: itself if it is such, else always the same for the same id, so that prompts repeat. */
function nineOf(id: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id;
  const bytes = createHash("sha256").update(id).digest();
  return Array.from(bytes.subarray(0, 9), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/** Calls, of which those before `first` were answered. */
interface Waiting {
  readonly calls: NamedCall[];
  first: number;
}

function firstWaiting(waiting: Waiting | undefined): NamedCall | undefined {
  if (waiting === undefined) return undefined;
  while (waiting.calls[waiting.first]?.isAnswered) waiting.first++;
  return waiting.calls[waiting.first];
}

function valueAt<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
