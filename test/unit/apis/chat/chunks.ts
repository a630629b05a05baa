/** Reads a chat stream as strict clients do, and folds it into the object that the same answer gives without `stream`. */

export interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly choices: {
    readonly index: number;
    readonly delta: { role?: string; content?: string };
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

/** Throws at the first breach of the grammar of a whole stream. */
export function checkGrammar({ chunks, done, error }: ReadStream, choices: number, includeUsage: boolean): void {
  const fail = (what: string, chunk: unknown) => {
    throw new Error(`${what}: ${JSON.stringify(chunk)}`);
  };
  const first = chunks[0];
  if (first === undefined) throw new Error("no chunks");
  const phase = new Array<"none" | "open" | "finished">(choices).fill("none");
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
      if (phase[index] === undefined) fail("no such choice", chunk);
      if (phase[index] === "finished") fail("after the finish", chunk);
      if (phase[index] === "none") {
        if (delta.role !== "assistant" || delta.content !== "" || finish_reason !== null) fail("no role first", chunk);
        phase[index] = "open";
      } else if (finish_reason !== null) {
        if (Object.keys(delta).length > 0) fail("a finish with a delta", chunk);
        phase[index] = "finished";
      } else if (Object.keys(delta).join() !== "content") fail("not just content", chunk);
    }
  });
  if (error !== undefined) {
    if (done) throw new Error("[DONE] after an error");
    return;
  }
  if (!done) throw new Error("no [DONE]");
  phase.forEach((state, index) => {
    if (state !== "finished") throw new Error(`choice ${index} is ${state}`);
  });
  if (includeUsage && chunks.at(-1)?.choices.length !== 0) throw new Error("no usage chunk");
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
      message: { role: "assistant", content: own.map(({ delta }) => delta.content ?? "").join(""), refusal: null },
      logprobs,
      finish_reason,
      stop_reason: "stop_reason" in rest ? rest.stop_reason : undefined,
      token_ids: own.flatMap((choice) => choice.token_ids ?? []),
    };
  });
}
