import type { TokenDecoder } from "../../tokenizer/tokenizer.ts";
import type { Choice, Generation, GenerationWriter } from "../generation.ts";
import type { SimulatorHost } from "../host.ts";
import type { HttpCall, HttpPart } from "../http/call.ts";
import { logprobRow, type TokenRow } from "../output/logprobs.ts";
import type { Flavor } from "./flavors.ts";
import type { TextRequest } from "./request.ts";
import type { AnswerShape } from "./shapes.ts";

/** A token with its logprob, as an answer tells it. */
export interface SaidToken {
  readonly text: string;
  readonly id: number;
  readonly row: TokenRow;
}

/** One choice of an answer: its text as far as it is known. */
export interface TextChoice {
  /** Over all prompts. */
  readonly index: number;
  readonly choice: Choice;
  readonly decoder: TokenDecoder;
  text: string;
  /** Characters that went out. */
  sent: number;
  /** Tokens that went into the text. */
  decoded: number;
  /** Nothing was sent yet. */
  isNew: boolean;
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly total_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number } | null;
}

/** Writes the choices of an answer: as events when it is a stream, else as one body when all are known. */
export class TextAnswer {
  private readonly choices: TextChoice[] = [];
  private readonly created = Math.floor(Date.now() / 1000);
  private readonly longestStop: number;
  /** Choices of an answer that is no stream. */
  private readonly whole: Record<string, unknown>[] = [];
  /** What the other engine of a pair needs, as JSON. */
  private handoff: string | undefined;
  private lastEvent = "";
  private finished = 0;

  constructor(
    private readonly host: SimulatorHost,
    private readonly call: HttpCall,
    private readonly flavor: Flavor,
    readonly request: TextRequest,
    private readonly shape: AnswerShape,
    readonly id: string,
  ) {
    this.longestStop = Math.max(0, ...request.sampling.stop.map((stop) => stop.length));
  }

  /** The writer for one prompt of the request. */
  writer(prompt: number): GenerationWriter<HttpPart> {
    const { request } = this;
    return {
      chunk: (generation, choice, from, to) => {
        const own = this.choiceOf(prompt, choice);
        // A fault gives the same tokens twice.
        if (from < own.decoded) return this.call.event(this.lastEvent);
        const said = this.decode(generation, own, from, to);
        this.event(own, this.release(own, false), said, undefined, generation);
      },
      complete: (generation, choice, reason) => {
        const own = this.choiceOf(prompt, choice);
        if (!request.stream && own.decoded > 0) return;
        const said = request.stream ? [] : this.decode(generation, own, 0, choice.generated);
        own.text += own.decoder.end();
        own.text = own.text.slice(0, this.stopAt(own));
        this.finished++;
        this.handoff = generation.handoff;
        const finish = reason === "stop" && request.tool !== undefined ? request.toolFinish : reason;
        if (request.stream) this.event(own, this.release(own, true), said, finish, generation);
        else
          this.whole.push(
            this.shape.choice(this, own, said, { ...this.ending(choice, finish), ...this.ids(generation, own, 0) }),
          );
        if (this.finished === request.prompts.length * request.sampling.n) this.end();
      },
    };
  }

  private choiceOf(prompt: number, choice: Choice): TextChoice {
    const index = prompt * this.request.sampling.n + choice.index;
    let own = this.choices[index];
    if (!own) {
      const { skipSpecialTokens } = this.request.sampling;
      const decoder = this.host.model.tokenizer!.decoder({ skipSpecialTokens });
      own = { index, choice, decoder, text: "", sent: 0, decoded: 0, isNew: true };
      this.choices[index] = own;
    }
    return own;
  }

  private decode(generation: Generation<HttpPart>, own: TextChoice, from: number, to: number): SaidToken[] {
    const { sampling } = this.request;
    const plan = own.choice.sequence!.plan!;
    const said: SaidToken[] = [];
    for (let position = from; position < to; position++) {
      const id = plan.idAt(position);
      const text = own.decoder.push(id);
      own.text += text;
      own.decoded++;
      if (sampling.logprobs === undefined) continue;
      const row = logprobRow(id, position, sampling.logprobs, sampling.temperature === 0, this.host.model.vocabSize);
      const scripted = generation.rule?.logprobs?.[position];
      said.push({ text, id, row: scripted === undefined ? row : { ...row, logprob: scripted } });
    }
    return said;
  }

  /** Text that may go out: a stop string could begin in the rest, or does. */
  private release(own: TextChoice, last: boolean): string {
    const held = last || this.longestStop === 0 ? 0 : this.longestStop - 1;
    const stop = this.stopAt(own);
    const until = Math.max(own.sent, Math.min(own.text.length - held, stop));
    const text = own.text.slice(own.sent, until);
    own.sent = until;
    return text;
  }

  /** Where the text ends for the client. */
  private stopAt({ choice, text }: TextChoice): number {
    const stop = choice.sequence?.plan?.matchedStop;
    if (stop === undefined || this.request.sampling.includeStopStrInOutput) return text.length;
    const at = text.indexOf(stop);
    return at < 0 ? text.length : at;
  }

  private event(
    own: TextChoice,
    text: string,
    said: readonly SaidToken[],
    finish: string | undefined,
    generation: Generation<HttpPart>,
  ): void {
    const { request, shape } = this;
    const ids = this.ids(generation, own, own.choice.lastFrom);
    if (text === "" && said.length === 0 && finish === undefined && !request.returnTokenIds && !own.isNew) return;
    const ending = finish === undefined ? { finish_reason: null } : this.ending(own.choice, finish);
    const choice = shape.delta(this, own, text, said, { ...ending, ...(finish === undefined ? ids : {}) });
    own.isNew = false;
    this.send([choice], request.continuousUsage ? this.usage() : undefined);
  }

  private send(choices: readonly unknown[], usage: Usage | undefined): void {
    const withUsage = usage ? { usage } : {};
    this.lastEvent = JSON.stringify({ ...this.frame(this.shape.eventObject), choices, ...withUsage });
    this.call.event(this.lastEvent);
  }

  private end(): void {
    if (this.request.stream) {
      if (this.request.includeUsage) this.send([], this.usage());
      this.call.event("[DONE]");
      return;
    }
    this.whole.sort((a, b) => Number(a["index"]) - Number(b["index"]));
    this.call.json(200, {
      ...this.frame(this.shape.object),
      choices: this.whole,
      usage: this.usage(),
      ...this.flavor.extras,
      ...(this.handoff === undefined ? {} : { kv_transfer_params: JSON.parse(this.handoff) as unknown }),
    });
  }

  private frame(object: string) {
    return { id: this.id, object, created: this.created, model: this.host.model.servedName };
  }

  private ending(choice: Choice, finish: string): Record<string, unknown> {
    const plan = choice.sequence?.plan;
    const { matchedStop } = this.flavor;
    const matched = plan?.matchedStop ?? plan?.matchedTokenId ?? null;
    return { finish_reason: finish, ...(matchedStop === undefined ? {} : { [matchedStop]: matched }) };
  }

  private ids(generation: Generation<HttpPart>, own: TextChoice, from: number): Record<string, unknown> {
    if (!this.request.returnTokenIds) return {};
    const plan = own.choice.sequence!.plan!;
    const to = this.request.stream ? own.choice.lastTo : own.choice.generated;
    const token_ids = Array.from({ length: to - from }, (_, i) => plan.idAt(from + i));
    return { token_ids, ...(own.isNew ? { prompt_token_ids: [...generation.spec.prompt] } : {}) };
  }

  private usage(): Usage {
    const prompt = this.request.prompts.reduce((sum, ids) => sum + ids.length, 0);
    const completion = this.choices.reduce(
      (sum, { choice }) => sum + (this.request.stream ? choice.sent : choice.generated),
      0,
    );
    const cached = this.choices.reduce(
      (sum, { choice }) => sum + (choice.index === 0 ? (choice.sequence?.cachedTokens ?? 0) : 0),
      0,
    );
    return {
      prompt_tokens: prompt,
      total_tokens: prompt + completion,
      completion_tokens: completion,
      prompt_tokens_details: cached > 0 ? { cached_tokens: cached } : null,
    };
  }
}
