import type { TokenLogprobs } from "../../engines/engine.ts";
import type { GatewayError } from "../../errors.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import { failStream, flat, frameHead, frameTail, quoted, stopFields, usageTail } from "../openai/answer.ts";
import { usage } from "../openai/usage.ts";
import type { FrameWriter, StreamSink } from "../shared/answer.ts";
import { AnswerLogprobs, type CompletionAnswer, promptOfChoice } from "./answer.ts";
import type { BatchSink } from "./batch.ts";

/**
 * Turns the events of a request's generations into `text_completion` frames: for each choice its prompt, where that is echoed, its text,
 * and one with its finish reason; then the usage, where asked for, and `[DONE]`. An error is a frame of its own, and no `[DONE]` follows.
 */
export class CompletionStream implements BatchSink, StreamSink {
  started = false;
  error: GatewayError | undefined;
  finished = false;
  private readonly head: string;
  private readonly plainTail: string;
  /** Per choice, what comes before the text of a frame that holds nothing else. */
  private readonly textHeads: string[] = [];
  private readonly textTail: string;
  private readonly textOnly: boolean;
  private readonly logprobs: AnswerLogprobs;
  private readonly tokens: number[] = [];
  private readonly promptTokens: number;
  private firstTold = false;

  /** @param onFirst the first event is there (output, or the error that came instead of it) */
  constructor(
    private readonly answer: CompletionAnswer,
    private readonly out: FrameWriter,
    private readonly onFirst: () => void,
  ) {
    this.head = frameHead("text_completion", answer);
    this.plainTail = frameTail(answer);
    this.textTail = `,"logprobs":null,"finish_reason":null}${this.plainTail}`;
    this.textOnly = !answer.logprobs && !answer.continuousUsage && !answer.showsIds;
    this.logprobs = new AnswerLogprobs(answer);
    this.promptTokens = answer.prompts.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
  }

  logprobsOf(prompt: number, logprobs: TokenLogprobs): void {
    this.logprobs.takePrompt(prompt, logprobs);
  }

  emit(event: GenerationEvent): void {
    if (event.type === "output") this.output(event);
    else if (event.type === "finish") this.finish(event);
    else if (event.type === "usage") {
      this.first();
      this.finished = true;
      if (this.answer.includeUsage) {
        const total = usage(this.answer.onlyPrompt ? { ...event, completionTokens: 0 } : event);
        this.out.write(`${this.head}],"usage":${JSON.stringify(total)}}\n\n`);
      }
      this.out.write("data: [DONE]\n\n");
      this.out.end();
    } else this.fail(event.error);
  }

  flush(): void {
    this.out.flush();
  }

  commit(): void {
    this.started = true;
  }

  private output(event: GenerationEvent & { type: "output" }): void {
    const { index, parts, tokenIds } = event;
    this.begin(index);
    if (this.answer.onlyPrompt) return;
    const text = parts[0]?.type === "text" ? parts[0].text : ""; // unread output is one part
    if (this.textOnly) {
      if (text !== "") this.out.write(this.textHeads[index]! + quoted(text) + this.textTail);
      return;
    }
    const { answer } = this;
    if (answer.continuousUsage) this.tokens[index] = (this.tokens[index] ?? 0) + (tokenIds?.length ?? 0);
    if (text === "" && !answer.showsIds && event.logprobs === undefined) return;
    const logprobs = answer.logprobs ? JSON.stringify(this.logprobs.ofOutput(event)) : "null";
    const ids = answer.showsIds ? `,"token_ids":${JSON.stringify(tokenIds ?? [])}` : "";
    this.frame(index, text, `"logprobs":${logprobs},"finish_reason":null${ids}`);
  }

  private finish({ index, reason, matchedStop }: GenerationEvent & { type: "finish" }): void {
    this.begin(index);
    const { onlyPrompt } = this.answer;
    const stop = onlyPrompt ? "" : JSON.stringify(stopFields(matchedStop)).slice(1, -1);
    this.frame(
      index,
      "",
      `"logprobs":null,"finish_reason":"${onlyPrompt ? "length" : reason}"${stop === "" ? "" : `,${stop}`}`,
    );
  }

  /** What a choice's first frame has: its prompt. */
  private begin(index: number): void {
    if (this.textHeads[index] !== undefined) return;
    const { answer } = this;
    const { echo, tokenIds } = promptOfChoice(answer, index);
    const logprobs = echo !== undefined && answer.logprobs ? JSON.stringify(this.logprobs.ofPrompt(index)) : "null";
    this.first();
    this.textHeads[index] = flat(`${this.head}{"index":${index},"text":`);
    if (echo === undefined && !answer.showsIds) return;
    const ids = answer.showsIds ? `,"token_ids":[],"prompt_token_ids":[${Array.from(tokenIds).join(",")}]` : "";
    this.frame(index, echo?.text ?? "", `"logprobs":${logprobs},"finish_reason":null${ids}`);
  }

  private frame(index: number, text: string, fields: string): void {
    this.out.write(`${this.textHeads[index]}${JSON.stringify(text)},${fields}}${this.tail()}`);
  }

  /** What follows the choices in a frame. */
  private tail(): string {
    return this.answer.continuousUsage ? usageTail(this.promptTokens, this.tokens) : this.plainTail;
  }

  private first(): void {
    this.started = true;
    if (this.firstTold) return;
    this.firstTold = true;
    this.onFirst();
  }

  private fail(error: GatewayError): void {
    this.error = error;
    this.finished = true;
    failStream(this.out, error, this.started);
    this.onFirst();
  }
}
