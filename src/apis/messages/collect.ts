/** An answer as one message. */
import { type GatewayError, InternalError } from "../../errors.ts";
import type { AnswerSink } from "../shared/answer.ts";
import { newId } from "../shared/ids.ts";
import { type TurnEnd, type TurnItem, type TurnListener, turnSink } from "../shared/turn.ts";
import { type MessageAnswer, messageText, messageUsage, stopOf, wholeBlock } from "./answer.ts";

export interface MessageSink extends AnswerSink {
  /** JSON text of the message, once the generation has ended without an error. */
  text(): string;
}

/** A sink that collects the blocks. `hidesThinking`: the client did not ask to see how the model thinks. */
export function messageCollector(
  answer: MessageAnswer,
  { isClamped, hidesThinking }: { readonly isClamped: boolean; readonly hidesThinking: boolean },
): MessageSink {
  const blocks: string[] = [];
  let calls = 0;
  let error: GatewayError | undefined;
  let ended: TurnEnd | undefined;
  const listener: TurnListener = {
    begun() {},
    opened() {},
    delta() {},
    closed(item: TurnItem, complete: boolean) {
      if (item.kind === "call" && complete) calls++;
      blocks.push(wholeBlock(item, item.kind === "call" ? newId("toolu_") : "", answer));
    },
    ended(end) {
      ended = end;
    },
    failed(failure) {
      error = failure;
    },
    flush() {},
  };
  return {
    ...turnSink(listener, { isClamped, dropsReasoning: hidesThinking }),
    get error() {
      return error;
    },
    text() {
      if (ended === undefined) throw new InternalError("an answer without an end");
      const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = ended;
      const usage = messageUsage(promptTokens, cachedTokens, completionTokens, reasoningTokens);
      return messageText(answer, blocks, stopOf(ended, calls), usage);
    },
  };
}
