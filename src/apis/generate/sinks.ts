import type { TokenLogprobs } from "../../engines/engine.ts";
import type { GatewayError } from "../../errors.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { BatchSink, PromptCounts } from "../completions/batch.ts";
import { failStream } from "../openai/answer.ts";
import type { AnswerSink, FrameWriter, StreamSink } from "../shared/answer.ts";
import type { GenerateResults } from "./results.ts";

/** Lets results grow until all have ended. */
export class GenerateCollector implements BatchSink, AnswerSink {
  error: GatewayError | undefined;

  constructor(private readonly results: GenerateResults) {}

  begunWith(prompt: number, counts: PromptCounts): void {
    this.results.begunWith(prompt, counts);
  }

  logprobsOf(prompt: number, logprobs: TokenLogprobs): void {
    this.results.logprobsOf(prompt, logprobs);
  }

  emit(event: GenerationEvent): void {
    if (event.type === "output") this.results.output(event);
    else if (event.type === "finish") this.results.finish(event);
    else if (event.type === "error") this.error = event.error;
  }

  flush(): void {}
}

/**
 * Writes each result as a frame whenever it has grown, with all of its text; then `[DONE]`. An error is a frame of its own, and no
 * `[DONE]` follows.
 */
export class GenerateStream implements BatchSink, StreamSink {
  started = false;
  finished = false;
  error: GatewayError | undefined;
  private readonly grown = new Set<number>();
  private firstTold = false;

  constructor(
    private readonly results: GenerateResults,
    private readonly out: FrameWriter,
    private readonly onFirst: () => void,
  ) {}

  begunWith(prompt: number, counts: PromptCounts): void {
    this.results.begunWith(prompt, counts);
  }

  logprobsOf(prompt: number, logprobs: TokenLogprobs): void {
    this.results.logprobsOf(prompt, logprobs);
  }

  emit(event: GenerationEvent): void {
    if (event.type === "output") {
      this.results.output(event);
      this.grown.add(event.index);
    } else if (event.type === "finish") {
      this.results.finish(event);
      this.write(event.index);
    } else if (event.type === "usage") {
      this.finished = true;
      this.out.write("data: [DONE]\n\n");
      this.out.end();
    } else this.fail(event.error);
  }

  flush(): void {
    for (const index of this.grown) this.write(index);
    this.out.flush();
  }

  commit(): void {
    this.started = true;
  }

  private write(index: number): void {
    const frame = `data: ${this.results.json(index, this.results.count > 1)}\n\n`;
    this.grown.delete(index);
    this.started = true;
    if (!this.firstTold) {
      this.firstTold = true;
      this.onFirst();
    }
    this.out.write(frame);
  }

  private fail(error: GatewayError): void {
    this.error = error;
    this.finished = true;
    this.grown.clear();
    failStream(this.out, error, this.started);
    this.onFirst();
  }
}
