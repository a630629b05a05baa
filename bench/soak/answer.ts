/** Reads the answer to one request of the soak and holds it against what its engine must have said. */
import { isEcho, matchesEcho } from "./echo.ts";

/** What a request asks for, and so what its answer must be. */
export interface Wanted {
  /** Completions show ids, chats too; an HTTP engine's are only known by their text. */
  readonly shows: "ids" | "ids and text" | "text";
  readonly streams: boolean;
  /** The prompt's words, a token each with the space before it. */
  readonly words: readonly string[];
  readonly maxTokens: number;
}

export type Outcome =
  /** All tokens, each once and in order, with a true end. */
  | { readonly kind: "exact"; readonly tokens: number }
  /** A typed error, after a right beginning of so many tokens. */
  | { readonly kind: "failed"; readonly code: string; readonly tokens: number }
  /** The client left, and what it had was right. */
  | { readonly kind: "aborted"; readonly tokens: number }
  /** A lost, doubled or foreign token, an end without a reason, an error without a type. */
  | { readonly kind: "wrong"; readonly why: string };

interface Choice {
  readonly index: number;
  readonly text?: string;
  readonly delta?: { readonly content?: string | null; readonly reasoning_content?: string | null };
  readonly finish_reason?: string | null;
  readonly token_ids?: readonly number[];
  readonly prompt_token_ids?: readonly number[];
}

interface Frame {
  readonly choices?: readonly Choice[];
  readonly prompt_token_ids?: readonly number[];
  readonly usage?: { readonly completion_tokens: number } | null;
  readonly error?: { readonly type?: unknown; readonly code?: unknown; readonly message?: unknown };
}

/** What nobody's engine can be blamed for: the request was good, and the gateway must not stumble. */
const NEVER = new Set(["invalid_request", "internal_error", "model_not_found", "unsupported_parameter"]);
const SHOWN = 200;

export class Answer {
  private readonly ids: number[] = [];
  private promptIds: readonly number[] = [];
  private text = "";
  private pending = "";
  private finish: string | undefined;
  private completionTokens: number | undefined;
  private done = false;
  private code: string | undefined;
  private problem: string | undefined;

  constructor(private readonly wanted: Wanted) {}

  /** Tokens that came so far; pieces of text where ids are not shown. */
  get tokens(): number {
    return this.wanted.shows === "text" ? this.text.split(" ").length - 1 : this.ids.length;
  }

  /** Takes a piece of the body. */
  feed(status: number, piece: string): void {
    this.pending += piece;
    if (!this.wanted.streams || status !== 200) return;
    const lines = this.pending.split("\n");
    this.pending = lines.pop()!;
    for (const line of lines) if (line.startsWith("data: ")) this.line(line.slice("data: ".length));
  }

  /** The response is over. `problem`: the connection broke before its end. */
  end(status: number, problem?: string): Outcome {
    if (problem !== undefined) return wrong(`${problem}, after ${this.tokens} tokens of status ${status}`);
    if (!this.wanted.streams || status !== 200) this.frame(this.pending);
    else if (this.pending !== "") this.blame(`the body ends in a line: ${this.pending}`);
    this.checkBeginning();
    if (this.problem !== undefined) return wrong(this.problem);
    if (this.code !== undefined) return { kind: "failed", code: this.code, tokens: this.tokens };
    if (status !== 200) return wrong(`status ${status} without an error: ${this.pending.slice(0, SHOWN)}`);
    return this.whole();
  }

  /** The client leaves. */
  leave(): Outcome {
    this.checkBeginning();
    return this.problem === undefined ? { kind: "aborted", tokens: this.tokens } : wrong(this.problem);
  }

  private whole(): Outcome {
    const { maxTokens, streams, shows } = this.wanted;
    if (this.finish !== "length") return wrong(`it ended by ${this.finish ?? "nothing"} after ${this.tokens} tokens`);
    if (streams && !this.done) return wrong("no [DONE]");
    if (this.completionTokens !== maxTokens) return wrong(`usage of ${this.completionTokens} tokens for ${maxTokens}`);
    if (shows !== "text" && this.ids.length !== maxTokens)
      return wrong(`${this.ids.length} tokens instead of ${maxTokens}`);
    if (shows !== "ids" && !isEcho(this.text, this.wanted.words, maxTokens))
      return wrong(`the text is not that of ${maxTokens} tokens: ...${this.text.slice(-SHOWN)}`);
    return { kind: "exact", tokens: maxTokens };
  }

  /** What is there must be a beginning of what there is to come. */
  private checkBeginning(): void {
    const { shows, words } = this.wanted;
    if (shows !== "text" && this.ids.length > 0) this.checkIds();
    if (shows !== "ids" && !matchesEcho(this.text, words)) this.blame(`other text: ...${this.text.slice(-SHOWN)}`);
  }

  private checkIds(): void {
    const { shows, words, maxTokens } = this.wanted;
    if (shows === "ids and text" && this.promptIds.length !== words.length)
      this.blame(`a prompt of ${this.promptIds.length} tokens instead of ${words.length}`);
    const plain = this.promptIds.filter((id) => id < FIRST_SPECIAL);
    const at = this.ids.findIndex((id, i) => id !== plain[i % plain.length]);
    if (at >= 0) this.blame(`token ${at} is ${this.ids[at]} instead of ${plain[at % plain.length]}`);
    if (this.ids.length > maxTokens) this.blame(`${this.ids.length} tokens, more than ${maxTokens}`);
  }

  private line(text: string): void {
    // An HTTP engine may tell of an error and then say that it is done.
    const isEpilogue = text === "[DONE]" && this.code !== undefined && !this.done && this.wanted.shows === "text";
    if ((this.done || this.code !== undefined) && !isEpilogue) this.blame(`after the end: ${text}`);
    else if (text === "[DONE]") this.done = true;
    else this.frame(text);
  }

  private frame(text: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(text) as Frame;
    } catch {
      this.blame(`not JSON: ${text.slice(0, SHOWN)}`);
      return;
    }
    if (frame.error) this.error(frame.error, text);
    if (frame.prompt_token_ids) this.promptIds = frame.prompt_token_ids;
    if (frame.usage) this.completionTokens = frame.usage.completion_tokens;
    for (const choice of frame.choices ?? []) {
      if (choice.prompt_token_ids) this.promptIds = choice.prompt_token_ids;
      for (const id of choice.token_ids ?? []) this.ids.push(id);
      this.text += choice.text ?? choice.delta?.content ?? "";
      if (choice.finish_reason) this.finish = choice.finish_reason;
    }
  }

  private error({ type, code, message }: NonNullable<Frame["error"]>, text: string): void {
    // vLLM's HTTP server tells statuses as codes; they are passed on.
    const name = typeof code === "number" && code >= 500 ? String(code) : code;
    if (typeof type !== "string" || typeof name !== "string" || typeof message !== "string")
      this.blame(`an error without type or code: ${text.slice(0, SHOWN)}`);
    else if (NEVER.has(name) || type === "invalid_request_error") this.blame(`${name}: ${message}`);
    else this.code = name;
  }

  private blame(why: string): void {
    this.problem ??= why;
  }
}

/** Qwen's vocabulary ends here, and its special tokens begin: an echo leaves them out. */
const FIRST_SPECIAL = 151_643;

const wrong = (why: string): Outcome => ({ kind: "wrong", why });
