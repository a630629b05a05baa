/** Turns with calls and results, for templates that take less than the APIs allow. */
import { contentText, type Message } from "./conversation.ts";

/** A message with its place in the request. */
export interface Placed {
  readonly message: Message;
  readonly at: number;
  /** Of a message that has some of the calls of the one at its place: the first of them. */
  readonly firstCall?: number;
}

/** What the model is told of a tool that failed without a word. */
export const FAILED = "error";

/** The content of a message as it is shown. */
export const shownContent = ({ isError, content }: Message): Message["content"] =>
  isError === true && content.length === 0 ? FAILED : content;

/**
 * For templates that write one call a message: several calls become as many messages, each with the results that belong to it behind it, as if
 * the model had made one after the other.
 */
export function oneCallEach(placed: readonly Placed[]): Placed[] {
  const out: Placed[] = [];
  for (let i = 0; i < placed.length; i++) {
    const each = placed[i]!;
    const { toolCalls: calls = [] } = each.message;
    if (calls.length < 2) {
      out.push(each);
      continue;
    }
    const results: Placed[] = [];
    while (placed[i + 1]?.message.role === "tool") results.push(placed[++i]!);
    const next = resultsByCall(results);
    calls.forEach((call, k) => {
      const rest: Message = { role: "assistant", content: "", withoutContent: true };
      out.push({ ...each, message: { ...(k === 0 ? each.message : rest), toolCalls: [call] }, firstCall: k });
      const result = next(call.id);
      if (result !== undefined) out.push(result);
    });
    for (let rest = next(); rest !== undefined; rest = next()) out.push(rest);
  }
  return out;
}

/** Gives the first result that is left of a call, where those that name no call answer any; without an id the first that is left. */
function resultsByCall(results: readonly Placed[]): (id?: string) => Placed | undefined {
  const idOf = (at: number): string | undefined => results[at]!.message.toolCallId;
  const taken = new Set<number>();
  /** Where the results of an id are, in their order. */
  const places = new Map<string | undefined, number[]>();
  for (let at = results.length - 1; at >= 0; at--) {
    const same = places.get(idOf(at));
    if (same === undefined) places.set(idOf(at), [at]);
    else same.push(at); // the first is at the end
  }
  let first = 0;
  return (id) => {
    let at: number;
    if (id === undefined) {
      while (taken.has(first)) first++;
      at = first;
    } else {
      const [named, unnamed] = [places.get(id)?.at(-1), places.get(undefined)?.at(-1)];
      at = Math.min(named ?? results.length, unnamed ?? results.length);
      if (at < results.length) places.get(idOf(at))?.pop();
    }
    taken.add(at);
    return results[at];
  };
}

/** For templates that take nothing of the user's behind results: it goes to the end of the last one. */
export function textInResults(placed: readonly Placed[]): Placed[] {
  const out: Placed[] = [];
  for (const each of placed) {
    const last = out.at(-1);
    if (each.message.role !== "user" || last?.message.role !== "tool") out.push(each);
    else {
      const content = `${contentText(shownContent(last.message))}\n\n${contentText(each.message.content)}`;
      out[out.length - 1] = { ...last, message: { ...last.message, content } };
    }
  }
  return out;
}
