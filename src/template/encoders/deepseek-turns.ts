/** Turns of DeepSeek V4: tool results are part of the user's turn, and what follows each other in it becomes one. */

import { str } from "../engine/text.ts";
import { truthy, type Value } from "../engine/values.ts";
import type { PreparedMessage } from "../prepare-messages.ts";
import { refuse } from "./conversation.ts";
import { callsOf, contentText, field, partsOf, roleOf } from "./fields.ts";

export interface Block {
  readonly text: string;
  /** Id of the call whose result this is; undefined for what the user wrote. */
  readonly result: string | undefined;
}

export interface Turn {
  readonly role: string;
  readonly message: PreparedMessage;
  /** Of a user's turn. */
  readonly blocks: readonly Block[] | undefined;
  /** The side task it asks for. */
  readonly task: string | undefined;
}

const NO_MESSAGE: PreparedMessage = new Map();

/** A turn that more may be added to. */
interface Growing extends Turn {
  readonly blocks: Block[] | undefined;
}

/** @param image stands for an image in the text; undefined: images are refused. */
export function turnsOf(messages: readonly PreparedMessage[], image: string | undefined): readonly Turn[] {
  const turns: Growing[] = [];
  for (const message of messages) {
    const role = roleOf(message);
    const last = turns.at(-1);
    if (role === "tool") {
      const result = str(field(message, "tool_call_id") ?? "");
      const block = { text: `<tool_result>${contentText(message, "\n\n", image)}</tool_result>`, result };
      if (last?.blocks !== undefined) last.blocks.push(block);
      else turns.push({ role: "user", message: NO_MESSAGE, blocks: [block], task: undefined });
    } else if (role === "user") {
      const blocks = userBlocks(message, image);
      if (last?.blocks !== undefined && last.task === undefined) for (const block of blocks) last.blocks.push(block);
      else turns.push({ role, message, blocks, task: taskOf(message) });
    } else turns.push({ role, message, blocks: undefined, task: taskOf(message) });
  }
  return inCallOrder(turns);
}

function taskOf(message: PreparedMessage): string | undefined {
  const task: Value = field(message, "task");
  return task === null ? undefined : str(task);
}

/** One block for each part of the content; absent content is empty text. */
function userBlocks(message: PreparedMessage, image: string | undefined): Block[] {
  const content = field(message, "content");
  if (content === null) return [{ text: "", result: undefined }];
  return partsOf(content).map((part) => ({
    text: part === "image" ? (image ?? refuse("The model takes no images")) : part.text,
    result: undefined,
  }));
}

/** Results in the order of the calls; those of unknown calls first. */
function inCallOrder(turns: readonly Turn[]): readonly Turn[] {
  let order = new Map<string, number>();
  return turns.map((turn) => {
    if (turn.role === "assistant" && truthy(field(turn.message, "tool_calls"))) {
      order = new Map(callsOf(turn.message).flatMap(({ id }, at) => (id ? [[id, at] as const] : [])));
      return turn;
    }
    const results = turn.blocks?.filter((block) => block.result !== undefined) ?? [];
    if (results.length < 2 || order.size === 0) return turn;
    const rank = ({ result = "" }: Block): number => order.get(result) ?? 0;
    const sorted = results.toSorted((a, b) => rank(a) - rank(b))[Symbol.iterator]();
    return {
      ...turn,
      blocks: turn.blocks?.map((block) => (block.result === undefined ? block : sorted.next().value!)),
    };
  });
}
