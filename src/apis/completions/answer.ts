import type { TokenLogprobs } from "../../engines/engine.ts";
import { EngineFailureError } from "../../errors.ts";
import { continuedDecoder } from "../../generation/continued-decoder.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { StreamedAnswer } from "../openai/answer.ts";
import type { Echo } from "./echo.ts";
import { characters, LegacyDrawing, type LegacyLogprobs } from "./logprobs.ts";

/** One prompt of a request, as its answer needs it. */
export interface AnsweredPrompt {
  readonly tokenIds: Uint32Array;
  /** The answer's text begins with it. */
  readonly echo: Echo | undefined;
}

/** What every object and chunk of one answer has in common. */
export interface CompletionAnswer extends StreamedAnswer {
  readonly prompts: readonly AnsweredPrompt[];
  /** Choices of each prompt. */
  readonly choices: number;
  readonly tokenizer: Tokenizer;
  readonly logprobs: boolean;
  readonly tokensAsIds: boolean;
  readonly skipSpecialTokens: boolean;
  /** `return_token_ids`: the answer shows the prompts' and the choices' ids. */
  readonly showsIds: boolean;
  /** Nothing was asked for but the prompt: the token that engines make all the same is not shown. */
  readonly onlyPrompt: boolean;
}

export const promptOfChoice = (answer: CompletionAnswer, index: number): AnsweredPrompt =>
  answer.prompts[Math.floor(index / answer.choices)]!;

/** Draws the logprobs of an answer's choices, in the order in which they come. */
export class AnswerLogprobs {
  private readonly prompts: (LegacyLogprobs | undefined)[] = [];
  private readonly drawings: LegacyDrawing[] = [];

  constructor(private readonly answer: CompletionAnswer) {}

  /** Takes those of a prompt's tokens. */
  takePrompt(prompt: number, logprobs: TokenLogprobs): void {
    const { prompts, tokenizer, tokensAsIds } = this.answer;
    const echo = prompts[prompt]?.echo;
    if (echo === undefined) return;
    const drawing = new LegacyDrawing(tokenizer, tokenizer.decoder({ skipSpecialTokens: false }), tokensAsIds, 0);
    this.prompts[prompt] = drawing.prompt(logprobs, echo.from, characters(echo.text));
  }

  /** Those of the prompt that a choice begins with. Throws where the engine has given none. */
  ofPrompt(index: number): LegacyLogprobs {
    const found = this.prompts[Math.floor(index / this.answer.choices)];
    if (found !== undefined) return found;
    throw new EngineFailureError(502, "engine_protocol_error", "The engine gave no logprobs of the prompt");
  }

  /** Those of what a choice has said since the last time. */
  ofOutput({ index, tokenIds = [], logprobs = [] }: GenerationEvent & { type: "output" }): LegacyLogprobs {
    const { answer } = this;
    const { tokenizer, tokensAsIds, skipSpecialTokens } = answer;
    const prompt = promptOfChoice(answer, index);
    this.drawings[index] ??= new LegacyDrawing(
      tokenizer,
      continuedDecoder(tokenizer, skipSpecialTokens, prompt.tokenIds),
      tokensAsIds,
      prompt.echo === undefined ? 0 : characters(prompt.echo.text),
    );
    return this.drawings[index].output(tokenIds, logprobs);
  }
}
