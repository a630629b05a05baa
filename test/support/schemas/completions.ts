/** Objects of OpenAI's Completions, as strict as its clients may be. */
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const strict = { additionalProperties: false } as const;
const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()]);
const count = t.Integer({ minimum: 0 });
const logprobs = t.Object(
  {
    tokens: t.Array(t.String()),
    token_logprobs: t.Array(nullable(t.Number({ maximum: 0, minimum: -9999 }))),
    top_logprobs: t.Array(nullable(t.Record(t.String(), t.Number({ maximum: 0, minimum: -9999 })))),
    text_offset: t.Array(count),
  },
  strict,
);
const reason = t.Union([t.Literal("stop"), t.Literal("length")]);
const choice = (finish: TSchema) =>
  t.Object(
    {
      index: count,
      text: t.String(),
      logprobs: nullable(logprobs),
      finish_reason: finish as typeof reason,
      stop_reason: t.Optional(t.Union([t.String(), count])),
      matched_stop: t.Optional(t.Union([t.String(), count])),
      token_ids: t.Optional(t.Array(count)),
      prompt_token_ids: t.Optional(t.Array(count, { minItems: 1 })),
    },
    strict,
  );
const usage = t.Object(
  {
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: t.Object({ cached_tokens: count }, strict),
    completion_tokens_details: t.Object({ reasoning_tokens: count }, strict),
  },
  strict,
);
const shared = {
  id: t.String({ pattern: "^cmpl-" }),
  object: t.Literal("text_completion"),
  created: t.Integer({ minimum: 1_600_000_000 }),
  model: t.String({ minLength: 1 }),
};
export const completionSchema = t.Object(
  { ...shared, choices: t.Array(choice(reason), { minItems: 1 }), usage },
  strict,
);
export type Completion = Static<typeof completionSchema>;
const running = t.Object({ prompt_tokens: count, completion_tokens: count, total_tokens: count }, strict);
const chunkSchema = t.Object(
  {
    ...shared,
    choices: t.Array(choice(nullable(reason)), { maxItems: 1 }),
    usage: t.Optional(nullable(t.Union([usage, running]))),
  },
  strict,
);
type Chunk = Static<typeof chunkSchema>;

function check<S extends TSchema>(schema: S, value: unknown): Static<S> {
  const [problem] = Value.Errors(schema, value);
  if (problem) throw new Error(`${problem.path}: ${problem.message} in ${JSON.stringify(value).slice(0, 400)}`);
  return value as Static<S>;
}

const LISTS = ["tokens", "token_logprobs", "top_logprobs", "text_offset"] as const;
type Logprobs = NonNullable<Completion["choices"][number]["logprobs"]>;

export function checkCompletion(value: unknown): Completion {
  // a copy, as OpenAI's client adds members that are not enumerated
  const completion = check(completionSchema, { ...(value as object) });
  completion.choices.forEach(({ index, logprobs: found }, i) => {
    if (index !== i) throw new Error(`choice ${i} has the index ${index}`);
    if (found) checkLists(found);
  });
  return completion;
}

function checkLists(found: Logprobs): void {
  const [length, ...others] = new Set(LISTS.map((name) => found[name].length));
  if (others.length > 0) throw new Error(`lists of ${length} and ${others.join()}`);
}

export type Folded = Omit<Completion, "created" | "id" | "usage"> & { usage?: unknown };

/**
 * The chunks of a stream as one answer. Throws where they are not in order: for each choice any number of chunks, then one with its
 * reason; then at most one with the usage; then [DONE].
 */
export function foldCompletion(frames: readonly string[]): Folded {
  if (frames.at(-1) !== "[DONE]") throw new Error(`the stream ends with ${frames.at(-1)}`);
  const choices: Completion["choices"] = [];
  const ended = new Set<number>();
  let head: Chunk | undefined;
  let total: unknown;
  for (const frame of frames.slice(0, -1)) {
    const chunk = check(chunkSchema, JSON.parse(frame));
    head ??= chunk;
    if (chunk.id !== head.id || chunk.created !== head.created || chunk.model !== head.model)
      throw new Error("a chunk of another answer");
    if (total !== undefined) throw new Error("a chunk behind the usage");
    const [piece] = chunk.choices;
    if (piece === undefined) {
      total = chunk.usage;
      continue;
    }
    const { index, text, logprobs: found, finish_reason: end, ...more } = piece;
    if (ended.has(index)) throw new Error(`choice ${index} goes on behind its end`);
    choices[index] ??= { index, text: "", logprobs: null, finish_reason: "stop" };
    const choice = choices[index];
    choice.text += text;
    if (found) {
      checkLists(found);
      choice.logprobs ??= { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
      for (const name of LISTS) (choice.logprobs[name] as unknown[]).push(...found[name]);
    }
    const { token_ids: ids, ...rest } = more;
    if (ids) choice.token_ids = [...(choice.token_ids ?? []), ...ids];
    Object.assign(choice, rest);
    if (end !== null) {
      choice.finish_reason = end;
      ended.add(index);
    }
  }
  if (head === undefined || ended.size !== choices.length) throw new Error("a choice has no end");
  return { object: head.object, model: head.model, choices, ...(total !== undefined && { usage: total }) };
}
