import { Type as t } from "@sinclair/typebox";

const nullable = { nullable: true };
const workers = t.Array(t.String({ description: "Id of a worker" }));

/** What an explanation is asked for with, for the API document: bodies of other APIs besides, whose schemas check them. */
export const explainRequest = t.Object(
  {
    model: t.Optional(t.String({ description: "May be left out if there is one model" })),
    prompt: t.Optional(t.Any({ description: "As of /v1/completions, whose other members may be there, too" })),
    messages: t.Optional(t.Any({ description: "As of /v1/chat/completions, likewise" })),
    token_ids: t.Optional(t.Array(t.Integer({ minimum: 0 }), { description: "A prompt in tokens" })),
  },
  { additionalProperties: true },
);

/** The answer, for the API document. */
export const reportSchema = t.Object({
  model: t.String(),
  policy: t.String(),
  tokens: t.Integer({ description: "Of the prompt" }),
  blockSize: t.Integer({ description: "Tokens of a block; 0: the prompt was not looked up" }),
  blocks: t.Integer({ description: "Full blocks of the prompt" }),
  chosen: t.String({ description: "Id of the worker; empty: none can take the request" }),
  branch: t.String({ description: "hit, tie, miss, balance, key, target, only, turn, probe or nobody" }),
  candidates: t.Array(
    t.Object({
      id: t.String(),
      url: t.String(),
      role: t.String(),
      state: t.String(),
      excluded: t.Optional(t.String({ description: "Why it is not chosen from" })),
      matchedTokens: t.Integer({ description: "Of the prompt, in its cache" }),
      isExact: t.Boolean({ description: "It told so by its KV events" }),
      queuedTokens: t.Integer(),
      running: t.Integer({ description: "Requests" }),
      kvUsage: t.Optional(t.Number({ description: "Share of its KV cache in use" })),
      score: t.Optional(t.Number({ ...nullable, description: "The least is the best" })),
    }),
  ),
  spans: t.Array(
    t.Object(
      { fromBlock: t.Integer(), toBlock: t.Integer(), exact: workers, guessed: workers },
      {
        description: "Blocks that the same workers hold",
      },
    ),
  ),
  decode: t.Optional(t.Any({ description: "The same of the worker that decodes, where that is another one" })),
});
