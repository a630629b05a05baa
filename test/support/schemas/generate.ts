/** Objects of SGLang's native API. */
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const strict = { additionalProperties: false } as const;
const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()]);
const count = t.Integer({ minimum: 0 });
const token = t.Tuple([nullable(t.Number({ maximum: 0 })), count, nullable(t.String())]);
const finish = t.Union([
  t.Object({ type: t.Literal("stop"), matched: t.Optional(t.Union([t.String(), count])) }, strict),
  t.Object({ type: t.Literal("length"), length: count }, strict),
]);
const result = t.Object(
  {
    text: t.String(),
    output_ids: t.Array(count),
    prompt_token_ids: t.Optional(t.Array(count)),
    meta_info: t.Object(
      {
        id: t.String({ minLength: 1 }),
        finish_reason: nullable(finish),
        prompt_tokens: count,
        completion_tokens: count,
        cached_tokens: count,
        e2e_latency: t.Optional(t.Number({ exclusiveMinimum: 0 })),
        input_token_logprobs: t.Optional(t.Array(token)),
        output_token_logprobs: t.Optional(t.Array(token)),
        output_token_logprobs_length: t.Optional(count),
        input_top_logprobs: t.Optional(t.Array(nullable(t.Array(token)))),
        output_top_logprobs: t.Optional(t.Array(t.Array(token))),
      },
      strict,
    ),
    index: t.Optional(count),
  },
  strict,
);
export type Result = Static<typeof result>;

export function checkResult(value: unknown): Result {
  const [problem] = Value.Errors(result, value);
  if (problem) throw new Error(`${problem.path}: ${problem.message} in ${JSON.stringify(value).slice(0, 400)}`);
  const found = value as Result;
  const { completion_tokens: tokens, finish_reason: end, e2e_latency: latency } = found.meta_info;
  if (found.output_ids.length !== tokens) throw new Error(`${tokens} tokens, but ${found.output_ids.length} ids`);
  if ((end === null) !== (latency === undefined)) throw new Error("the latency is told at the end, and only there");
  return found;
}

/** The last frame of each result of a stream. Throws where a frame does not go on from the one before it. */
export function lastResults(frames: readonly string[]): Result[] {
  if (frames.at(-1) !== "[DONE]") throw new Error(`the stream ends with ${frames.at(-1)}`);
  const last: Result[] = [];
  for (const frame of frames.slice(0, -1)) {
    const { index = 0, ...next } = checkResult(JSON.parse(frame));
    const before = last[index];
    if (before?.meta_info.finish_reason) throw new Error(`result ${index} goes on behind its end`);
    if (before && !next.text.startsWith(before.text))
      throw new Error(`${next.text} does not go on from ${before.text}`);
    last[index] = next;
  }
  if (last.some(({ meta_info: { finish_reason: end } }) => end === null)) throw new Error("a result has no end");
  return last;
}
