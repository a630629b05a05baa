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
    calls.forEach((call, k) => {
      const rest: Message = { role: "assistant", content: "", withoutContent: true };
      out.push({ ...each, message: { ...(k === 0 ? each.message : rest), toolCalls: [call] }, firstCall: k });
      // those that name no call answer the calls in their order
      const at = results.findIndex(({ message: { toolCallId: id } }) => id === undefined || id === call.id);
      if (at >= 0) out.push(...results.splice(at, 1));
    });
    out.push(...results);
  }
  return out;
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
