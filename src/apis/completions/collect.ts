import type { TokenLogprobs } from "../../engines/engine.ts";
import type { GatewayError } from "../../errors.ts";
import type { FinishReason, GenerationEvent } from "../../generation/events.ts";
import { stopFields } from "../openai/answer.ts";
import { type Usage, usage } from "../openai/usage.ts";
import type { AnswerSink } from "../shared/answer.ts";
import { AnswerLogprobs, type CompletionAnswer, promptOfChoice } from "./answer.ts";
import type { BatchSink } from "./batch.ts";
import { type LegacyLogprobs, noLogprobs } from "./logprobs.ts";

interface Collected {
  text: string;
  readonly logprobs: LegacyLogprobs;
  readonly tokenIds: number[];
  finish: FinishReason | undefined;
  matchedStop: string | number | undefined;
}

/** Collects the events of a request's generations into one `text_completion` object. */
export class CompletionCollector implements BatchSink, AnswerSink {
  error: GatewayError | undefined;
  private readonly choices: Collected[];
  private readonly logprobs: AnswerLogprobs;
  private usage: Usage | undefined;

  constructor(private readonly answer: CompletionAnswer) {
    this.logprobs = new AnswerLogprobs(answer);
    this.choices = Array.from({ length: answer.prompts.length * answer.choices }, () => ({
      text: "",
      logprobs: noLogprobs(),
      tokenIds: [],
      finish: undefined,
      matchedStop: undefined,
    }));
  }

  logprobsOf(prompt: number, logprobs: TokenLogprobs): void {
    this.logprobs.takePrompt(prompt, logprobs);
  }

  emit(event: GenerationEvent): void {
    if (event.type === "error") this.error = event.error;
    else if (event.type === "usage") {
      this.usage = usage(this.answer.onlyPrompt ? { ...event, completionTokens: 0 } : event);
    } else {
      const choice = this.choices[event.index]!;
      if (event.type === "finish") {
        choice.finish = this.answer.onlyPrompt ? "length" : event.reason;
        choice.matchedStop = this.answer.onlyPrompt ? undefined : event.matchedStop;
      } else if (!this.answer.onlyPrompt) this.output(choice, event);
    }
  }

  flush(): void {}

  private output(choice: Collected, event: GenerationEvent & { type: "output" }): void {
    for (const part of event.parts) if (part.type === "text") choice.text += part.text;
    if (event.tokenIds) choice.tokenIds.push(...event.tokenIds);
    if (this.answer.logprobs) append(choice.logprobs, this.logprobs.ofOutput(event));
  }

  /** The answer, once the generations have ended without an error. Throws where the engine has kept something back. */
  object(): Record<string, unknown> {
    const { id, created, model } = this.answer;
    const choices = this.choices.map((choice, index) => this.choice(choice, index));
    return { id, object: "text_completion", created, model, choices, usage: this.usage };
  }

  private choice(choice: Collected, index: number): Record<string, unknown> {
    const { answer } = this;
    const { echo, tokenIds } = promptOfChoice(answer, index);
    const logprobs = noLogprobs();
    if (answer.logprobs) {
      if (echo !== undefined) append(logprobs, this.logprobs.ofPrompt(index));
      append(logprobs, choice.logprobs);
    }
    return {
      index,
      text: (echo?.text ?? "") + choice.text,
      logprobs: answer.logprobs ? logprobs : null,
      finish_reason: choice.finish ?? null,
      ...stopFields(choice.matchedStop),
      ...(answer.showsIds && { token_ids: choice.tokenIds, prompt_token_ids: Array.from(tokenIds) }),
    };
  }
}

function append(to: LegacyLogprobs, more: LegacyLogprobs): void {
  for (const [i, token] of more.tokens.entries()) {
    to.tokens.push(token);
    to.token_logprobs.push(more.token_logprobs[i]!);
    to.top_logprobs.push(more.top_logprobs[i]!);
    to.text_offset.push(more.text_offset[i]!);
  }
}
