/** Arguments of calls that a client sent as an object, as the JSON text that it wrote. */
import { rawMemberItemsSteps, rawMemberText, rawMemberTextSteps } from "../../generation/raw-members.ts";
import type { Steps } from "../../steps.ts";
import type { ChatMessage } from "./schema.ts";

/** JSON text of the arguments of a message's call `call`; without it, of its `function_call`. */
export type ArgumentsText = (message: number, call?: number) => Steps<string>;

/** `raw`: the text of the request; where it is not known, numbers and the order of keys are those that `JSON.parse` gave. */
export function argumentsTexts(messages: readonly ChatMessage[], raw: string | undefined): ArgumentsText {
  /** Texts of the messages, and of the calls of the one that was asked for last. */
  let texts: readonly string[] | undefined;
  let calls: { readonly of: number; readonly texts: readonly string[] } | undefined;
  return function* (at, call) {
    if (raw === undefined) return JSON.stringify(parsedArguments(messages[at], call));
    texts ??= yield* rawMemberItemsSteps(raw, "messages");
    const message = texts[at] ?? "";
    if (call === undefined) return rawArguments(yield* rawMemberTextSteps(message, "function_call"));
    if (calls?.of !== at) calls = { of: at, texts: yield* rawMemberItemsSteps(message, "tool_calls") };
    return rawArguments(rawMemberText(calls.texts[call] ?? "", "function"));
  };
}

const rawArguments = (called: string | undefined): string => rawMemberText(called ?? "", "arguments") ?? "";

const parsedArguments = (message: ChatMessage | undefined, call: number | undefined): unknown =>
  (call === undefined ? message?.function_call : message?.tool_calls?.[call]?.function)?.arguments;
