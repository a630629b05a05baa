/** Reads a chat stream as strict clients do, and folds it into the object that the same answer gives without `stream`. */

export interface CallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
  readonly custom?: { readonly name?: string; readonly input?: string };
}

export interface Delta {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly CallDelta[];
  readonly function_call?: { readonly name?: string; readonly arguments?: string };
}

export interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: {
    readonly index: number;
    readonly delta: Delta;
    readonly logprobs: { content: unknown[]; refusal: null } | null;
    readonly finish_reason: string | null;
    readonly stop_reason?: string | number;
    readonly token_ids?: number[];
  }[];
  readonly usage?: Record<string, unknown> | null;
  readonly prompt_token_ids?: number[];
}

export interface ReadStream {
  readonly chunks: Chunk[];
  readonly done: boolean;
  readonly error: Record<string, unknown> | undefined;
}

/** Splits into frames; throws where the text is not one JSON object or `[DONE]` a frame. */
export function readFrames(text: string): ReadStream {
  if (text !== "" && !text.endsWith("\n\n")) throw new Error("the last frame does not end");
  const chunks: Chunk[] = [];
  let done = false;
  let error: Record<string, unknown> | undefined;
  for (const frame of text.split("\n\n").slice(0, -1)) {
    if (done || error !== undefined) throw new Error(`a frame after the last: ${frame}`);
    if (!frame.startsWith("data: ") || frame.includes("\n")) throw new Error(`not one data line: ${frame}`);
    const data = frame.slice(6);
    if (data === "[DONE]") done = true;
    else {
      const value = JSON.parse(data) as Chunk & { error?: Record<string, unknown> };
      if (value.error) error = value.error;
      else chunks.push(value);
    }
  }
  return { chunks, done, error };
}

/** What the deltas of one choice may hold: one thing at a time, and calls in order. */
class Phases {
  state: "none" | "open" | "finished" = "none";
  private calls = 0;
  private kind = "";

  /** Says what is wrong with the next delta; undefined: nothing. */
  next(delta: Delta, finish: string | null): string | undefined {
    if (this.state === "finished") return "after the finish";
    const keys = Object.keys(delta).join();
    if (this.state === "none") {
      this.state = "open";
      const isRole = keys === "role,content" && delta.role === "assistant" && (delta.content ?? "") === "";
      return isRole && finish === null ? undefined : "no role first";
    }
    if (finish !== null) {
      this.state = "finished";
      return keys === "" ? undefined : "a finish with a delta";
    }
    if (keys === "tool_calls") return this.call(delta.tool_calls!);
    return ["", "content", "reasoning_content", "function_call"].includes(keys) ? undefined : "not just one thing";
  }

  private call(deltas: readonly CallDelta[]): string | undefined {
    const [delta, ...more] = deltas;
    if (delta === undefined || more.length > 0) return "not one call";
    const keys = Object.keys(delta).join();
    if (delta.type === undefined) {
      if (delta.index !== this.calls - 1) return "arguments of a call that is not open";
      const inner = this.kind === "custom" ? Object.keys(delta.custom ?? {}) : Object.keys(delta.function ?? {});
      const wanted = this.kind === "custom" ? "input" : "arguments";
      return keys === `index,${this.kind}` && inner.join() === wanted ? undefined : "not just arguments";
    }
    if (delta.index !== this.calls++) return "a call out of order";
    this.kind = delta.type;
    const begin = delta.type === "custom" ? { ...delta.custom, arguments: delta.custom?.input } : delta.function;
    const isWhole = typeof begin?.name === "string" && begin.arguments === "" && delta.id !== "";
    return keys === `index,id,type,${this.kind}` && isWhole ? undefined : "not the begin of a call";
  }
}

/** Throws at the first breach of the grammar of a whole stream. */
export function checkGrammar({ chunks, done, error }: ReadStream, choices: number, includeUsage: boolean): void {
  const fail = (what: string, chunk: unknown) => {
    throw new Error(`${what}: ${JSON.stringify(chunk)}`);
  };
  const first = chunks[0];
  if (first === undefined) throw new Error("no chunks");
  const phases = Array.from({ length: choices }, () => new Phases());
  chunks.forEach((chunk, at) => {
    for (const key of ["id", "created", "model"] as const) if (chunk[key] !== first[key]) fail(`another ${key}`, chunk);
    if (chunk.object !== "chat.completion.chunk") fail("wrong object", chunk);
    if (chunk.choices.length === 0) {
      if (!includeUsage || at !== chunks.length - 1 || !chunk.usage) fail("an empty chunk", chunk);
      return;
    }
    if (includeUsage !== "usage" in chunk) fail("usage", chunk);
    if (chunk.choices.length !== 1) fail("several choices", chunk);
    for (const { index, delta, finish_reason } of chunk.choices) {
      const wrong = phases[index] === undefined ? "no such choice" : phases[index].next(delta, finish_reason);
      if (wrong !== undefined) fail(wrong, chunk);
    }
  });
  if (error !== undefined) {
    if (done) throw new Error("[DONE] after an error");
    return;
  }
  if (!done) throw new Error("no [DONE]");
  phases.forEach(({ state }, index) => {
    if (state !== "finished") throw new Error(`choice ${index} is ${state}`);
  });
  if (includeUsage && chunks.at(-1)?.choices.length !== 0) throw new Error("no usage chunk");
}

/** The message that the deltas of a choice make, as clients join them. */
function foldMessage(deltas: readonly Delta[]): Record<string, unknown> {
  const message: Record<string, unknown> = { role: "assistant", content: null, refusal: null };
  const append = (to: Record<string, unknown>, key: string, text: string | null | undefined) => {
    if (typeof text === "string") to[key] = ((to[key] as string | null | undefined) ?? "") + text;
  };
  const calls: Record<string, Record<string, unknown>>[] = [];
  for (const { content, reasoning_content, tool_calls, function_call } of deltas) {
    append(message, "content", content);
    append(message, "reasoning_content", reasoning_content);
    for (const { index, ...delta } of tool_calls ?? []) {
      const call = calls[index];
      if (call === undefined) calls[index] = structuredClone(delta) as unknown as (typeof calls)[number];
      else if (delta.custom) append(call["custom"]!, "input", delta.custom.input);
      else append(call["function"]!, "arguments", delta.function?.arguments);
    }
    if (function_call === undefined) continue;
    const old = (message["function_call"] ??= {}) as Record<string, unknown>;
    append(old, "name", function_call.name);
    append(old, "arguments", function_call.arguments);
  }
  return calls.length === 0 ? message : { ...message, tool_calls: calls };
}

/** The `choices` of a whole stream, joined. */
export function fold({ chunks }: ReadStream, choices: number): unknown[] {
  return Array.from({ length: choices }, (_, index) => {
    const own = chunks.flatMap((chunk) => chunk.choices.filter((choice) => choice.index === index));
    const logprobs = own.flatMap((choice) => choice.logprobs?.content ?? []);
    const last = own.at(-1) ?? { finish_reason: null };
    const { finish_reason, ...rest } = last;
    return {
      index,
      message: foldMessage(own.map(({ delta }) => delta)),
      logprobs,
      finish_reason,
      stop_reason: "stop_reason" in rest ? rest.stop_reason : undefined,
      token_ids: own.flatMap((choice) => choice.token_ids ?? []),
    };
  });
}
