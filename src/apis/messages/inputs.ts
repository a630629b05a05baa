/** Inputs of the calls of a history, as JSON text with the numbers and the order of keys that the client wrote: prompts print both. */
import { asModelsWriteSteps, rawMemberItemsSteps, rawMemberTextSteps } from "../../generation/raw-members.ts";
import type { Steps } from "../../steps.ts";

/** JSON text of the input of block `block` of message `message`. */
export type InputTexts = (message: number, block: number, parsed: unknown) => Steps<string>;

/** `raw`: the text of the request; where it is not known, the inputs are written as `JSON.parse` gave them. */
export function inputTexts(raw: string | undefined): InputTexts {
  /** Texts of the messages, and of the blocks of the one that was asked for last. */
  let messages: readonly string[] | undefined;
  let blocks: { readonly of: number; readonly texts: readonly string[] } | undefined;
  return function* (message, block, parsed) {
    if (raw === undefined) return yield* asModelsWriteSteps(JSON.stringify(parsed));
    messages ??= yield* rawMemberItemsSteps(raw, "messages");
    if (blocks?.of !== message)
      blocks = { of: message, texts: yield* rawMemberItemsSteps(messages[message] ?? "", "content") };
    const text = yield* rawMemberTextSteps(blocks.texts[block] ?? "", "input");
    return yield* asModelsWriteSteps(text ?? JSON.stringify(parsed));
  };
}
