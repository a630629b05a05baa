/** The order of turns, for templates that take fewer orders than the APIs allow. */
import type { Placed } from "./call-turns.ts";
import type { Content, Message } from "./conversation.ts";
import { GrowingParts, partsOf } from "./growing-parts.ts";

/** Orders of messages that a template takes; what it does not take, it fails on. */
export interface TurnTraits {
  /** System messages. */
  readonly system: boolean;
  /** Two messages of this role in a row. */
  readonly repeats: { readonly user: boolean; readonly assistant: boolean };
  /** An answer before any message of the user. */
  readonly answerFirst: boolean;
}

/**
 * Messages in an order that the template takes, and as they are where it takes theirs: a system message in front becomes the beginning of
 * the first user message, messages of one role in a row become one behind system messages among them, and an empty user message comes
 * before an answer that nobody asked for.
 */
export function inTurns(placed: readonly Placed[], traits: TurnTraits): readonly Placed[] {
  const folded = traits.system ? placed : systemAsUser(placed);
  const joined = traits.repeats.user && traits.repeats.assistant ? folded : withoutRepeats(folded, traits);
  return traits.answerFirst ? joined : askedFirst(joined);
}

const isSystem = ({ role }: Message): boolean => role === "system" || role === "developer";

function systemAsUser(placed: readonly Placed[]): readonly Placed[] {
  const [first, next, ...others] = placed;
  if (first === undefined || !isSystem(first.message)) return placed;
  const { content } = first.message;
  if (next?.message.role !== "user") return [{ ...first, message: { role: "user", content } }, ...placed.slice(1)];
  return [{ ...next, message: { ...next.message, content: joinedContent(content, next.message.content) } }, ...others];
}

function withoutRepeats(placed: readonly Placed[], { repeats }: TurnTraits): Placed[] {
  const out: Placed[] = [];
  const growing = new GrowingParts();
  /** Where the last message is that is no system message. */
  let before = -1;
  for (const each of placed) {
    const last = out[before];
    const { role } = each.message;
    const isRefused = (role === "user" && !repeats.user) || (role === "assistant" && !repeats.assistant);
    const isJoined = isRefused && last?.message.role === role && !hasCalls(last.message) && !hasCalls(each.message);
    if (isJoined) out.splice(before, 1);
    out.push(isJoined ? { ...last, message: joined(last.message, each.message, growing) } : each);
    if (!isSystem(each.message)) before = out.length - 1;
  }
  return out;
}

/** Templates that want turns in order do not count those with calls among them. */
const hasCalls = ({ toolCalls = [] }: Message): boolean => toolCalls.length > 0;

function joined(first: Message, second: Message, growing: GrowingParts): Message {
  const { name, reasoning: _, ...rest } = first;
  const [before, behind] = [first.reasoning ?? "", second.reasoning ?? ""];
  const reasoning = before === "" || behind === "" ? before + behind : `${before}\n\n${behind}`;
  return {
    ...rest,
    content: joinedContent(first.content, second.content, growing),
    ...(name !== undefined && name === second.name && { name }),
    ...(reasoning !== "" && { reasoning }),
  };
}

/** An empty line between the texts, inside of the parts that meet: templates trim them. */
function joinedContent(first: Content, second: Content, growing = new GrowingParts()): Content {
  if (isEmpty(first)) return second;
  if (isEmpty(second)) return first;
  if (typeof first === "string" && typeof second === "string") return `${first}\n\n${second}`;
  const [before, after] = [partsOf(first), partsOf(second)];
  const text = `${before.at(-1)!.text}\n\n${after[0]!.text}`;
  return growing.with(first, [{ type: "text", text }, ...after.slice(1)], 1);
}

/** Has it no text? */
const isEmpty = (content: Content): boolean =>
  content.length === 0 || (typeof content !== "string" && content.length === 1 && content[0]!.text === "");

function askedFirst(placed: readonly Placed[]): readonly Placed[] {
  const begin = placed.findIndex(({ message }) => !isSystem(message));
  const first = placed[begin];
  if (first?.message.role !== "assistant") return placed;
  return [...placed.slice(0, begin), { message: { role: "user", content: "" }, at: first.at }, ...placed.slice(begin)];
}
