import type { GatewayError } from "../../errors.ts";
import type {
  CallKind,
  FinishReason,
  GenerationEvent,
  GenerationSink,
  LogprobEntry,
  OutputPart,
} from "../../generation/events.ts";
import { stopFields } from "../openai/answer.ts";
import { chatLogprobs } from "../openai/logprobs.ts";
import { type Usage, usage } from "../openai/usage.ts";
import { type ChatAnswer, finishReason, reasoningFields, toolCallFields } from "./answer.ts";

interface CollectedCall {
  readonly id: string;
  readonly name: string;
  readonly kind: CallKind;
  arguments: string;
}

interface Collected {
  text: string;
  reasoning: string;
  calls: CollectedCall[];
  logprobs: LogprobEntry[];
  tokenIds: number[];
  finish: FinishReason | undefined;
  matchedStop: string | number | undefined;
}

/** An unfinished call stays, with the arguments that there are: the choice ends with `length` then. */
function collect(choice: Collected, part: OutputPart): void {
  if (part.type === "text") choice.text += part.text;
  else if (part.type === "reasoning") choice.reasoning += part.text;
  else if (part.type === "tool_start") {
    const { id, name, kind } = part;
    choice.calls[part.call] = { id, name, kind, arguments: "" };
  } else if (part.type === "tool_arguments") choice.calls[part.call]!.arguments += part.text;
}

/** Collects the events of a generation into one `chat.completion` object. */
export class ChatCollector implements GenerationSink {
  error: GatewayError | undefined;
  private readonly choices: Collected[];
  private usage: Usage | undefined;

  constructor(private readonly answer: ChatAnswer) {
    this.choices = Array.from({ length: answer.choices }, () => ({
      text: "",
      reasoning: "",
      calls: [],
      logprobs: [],
      tokenIds: [],
      finish: undefined,
      matchedStop: undefined,
    }));
  }

  emit(event: GenerationEvent): void {
    if (event.type === "error") this.error = event.error;
    else if (event.type === "usage") this.usage = usage(event);
    else {
      const choice = this.choices[event.index]!;
      if (event.type === "output") {
        for (const part of event.parts) collect(choice, part);
        if (event.logprobs) choice.logprobs.push(...event.logprobs);
        if (event.tokenIds) choice.tokenIds.push(...event.tokenIds);
      } else {
        choice.finish = event.reason;
        choice.matchedStop = event.matchedStop;
      }
    }
  }

  flush(): void {}

  private message({ text, reasoning, calls }: Collected): Record<string, unknown> {
    const showsReasoning = reasoning !== "" && this.answer.reasoningFields.length > 0;
    return {
      role: "assistant",
      content: text === "" && (calls.length > 0 || showsReasoning) ? null : text,
      refusal: null,
      ...(showsReasoning && reasoningFields(this.answer, reasoning)),
      ...this.calls(calls),
    };
  }

  private calls(calls: readonly CollectedCall[]): Record<string, unknown> {
    const [first] = calls;
    if (first === undefined) return {};
    if (this.answer.legacyCalls) return { function_call: { name: first.name, arguments: first.arguments } };
    return {
      tool_calls: calls.map(({ id, kind, name, arguments: args }) => ({
        id,
        type: kind,
        ...toolCallFields(kind, args, name),
      })),
    };
  }

  /** The answer, once the generation has ended without an error. */
  object(): Record<string, unknown> {
    const { answer } = this;
    return {
      id: answer.id,
      object: "chat.completion",
      created: answer.created,
      model: answer.model,
      choices: this.choices.map((choice, index) => ({
        index,
        message: this.message(choice),
        logprobs: answer.logprobs
          ? { content: chatLogprobs(choice.logprobs, answer.tokenizer, answer.tokensAsIds), refusal: null }
          : null,
        finish_reason: choice.finish === undefined ? null : finishReason(answer, choice.finish),
        ...stopFields(choice.matchedStop),
        ...(answer.promptTokenIds && { token_ids: choice.tokenIds }),
      })),
      usage: this.usage,
      ...(answer.promptTokenIds && { prompt_token_ids: Array.from(answer.promptTokenIds) }),
    };
  }
}
