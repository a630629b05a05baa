import type { GatewayError } from "../../errors.ts";
import type { FinishReason, GenerationEvent, GenerationSink, LogprobEntry } from "../../generation/events.ts";
import { chatLogprobs } from "../openai/logprobs.ts";
import { type Usage, usage } from "../openai/usage.ts";
import { type ChatAnswer, stopFields } from "./answer.ts";

interface Collected {
  text: string;
  logprobs: LogprobEntry[];
  tokenIds: number[];
  finish: FinishReason | undefined;
  matchedStop: string | number | undefined;
}

/** Collects the events of a generation into one `chat.completion` object. */
export class ChatCollector implements GenerationSink {
  error: GatewayError | undefined;
  private readonly choices: Collected[];
  private usage: Usage | undefined;

  constructor(private readonly answer: ChatAnswer) {
    this.choices = Array.from({ length: answer.choices }, () => ({
      text: "",
      logprobs: [],
      tokenIds: [],
      finish: undefined,
      matchedStop: undefined,
    }));
  }

  emit(event: GenerationEvent): void {
    if (event.type === "error") this.error = event.error;
    else if (event.type === "usage") this.usage = usage(event.promptTokens, event.cachedTokens, event.completionTokens);
    else {
      const choice = this.choices[event.index]!;
      if (event.type === "text") {
        choice.text += event.text;
        if (event.logprobs) choice.logprobs.push(...event.logprobs);
        if (event.tokenIds) choice.tokenIds.push(...event.tokenIds);
      } else {
        choice.finish = event.reason;
        choice.matchedStop = event.matchedStop;
      }
    }
  }

  flush(): void {}

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
        message: { role: "assistant", content: choice.text, refusal: null },
        logprobs: answer.logprobs
          ? { content: chatLogprobs(choice.logprobs, answer.tokenizer, answer.tokensAsIds), refusal: null }
          : null,
        finish_reason: choice.finish,
        ...stopFields(choice.matchedStop),
        ...(answer.promptTokenIds && { token_ids: choice.tokenIds }),
      })),
      usage: this.usage,
      ...(answer.promptTokenIds && { prompt_token_ids: Array.from(answer.promptTokenIds) }),
    };
  }
}
