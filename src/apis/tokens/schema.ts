import { type Static, Type as t } from "@sinclair/typebox";
import { messageList, promptFields } from "../chat/schema.ts";
import { maybe } from "../shared/sampling-fields.ts";

const model = maybe(
  t.String({ description: "A model, its alias, or a tokenizer. May be left out if there is one model." }),
);
const textOrTexts = { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] };
const idList = { type: "array", items: { type: "integer", minimum: 0 } };
const listOrLists = { anyOf: [idList, { type: "array", items: idList }] };

/**
 * Request of `POST /v1/tokenize` (SMG) and `POST /tokenize` (vLLM): a prompt, or messages. Long lists are checked while they are
 * worked through, so that no check holds the thread.
 */
export const tokenizeRequest = t.Object(
  {
    model,
    prompt: t.Optional(t.Any(textOrTexts)),
    messages: maybe(messageList),
    ...promptFields,
    add_special_tokens: maybe(t.Boolean()),
    return_token_strs: maybe(t.Boolean()),
  },
  { additionalProperties: true },
);
export type TokenizeRequest = Static<typeof tokenizeRequest>;

/** Request of `POST /v1/detokenize` and `POST /detokenize`. */
export const detokenizeRequest = t.Object(
  { model, tokens: t.Any(listOrLists), skip_special_tokens: maybe(t.Boolean()) },
  { additionalProperties: true },
);
export type DetokenizeRequest = Static<typeof detokenizeRequest>;

/** Request of `POST /v1/tokenizers`. */
export const addTokenizerRequest = t.Object(
  {
    name: t.String({ minLength: 1, maxLength: 256 }),
    source: t.String({ minLength: 1, maxLength: 4096, description: "A folder or file of the server, or org/name" }),
    chat_template_path: maybe(t.String({ minLength: 1, maxLength: 4096 })),
  },
  { additionalProperties: true },
);
export type AddTokenizerRequest = Static<typeof addTokenizerRequest>;

const count = t.Any({ anyOf: [{ type: "integer" }, { type: "array", items: { type: "integer" } }] });
const nullable = { nullable: true };

/** Answers, for the API document. Lists are lists of lists, and numbers lists, if the prompt was a list. */
export const tokenizeResponse = t.Object({
  tokens: t.Any(listOrLists),
  count,
  char_count: count,
  max_model_len: t.Integer(nullable),
  token_strs: t.Array(t.String(), nullable),
});
export const detokenizeResponse = t.Object({ text: t.Any(textOrTexts) });
export const tokenizerInfo = t.Object({
  id: t.String(),
  name: t.String(),
  source: t.String(),
  vocab_size: t.Integer({ ...nullable, description: "null until the tokenizer is loaded" }),
  status: t.String({ description: "pending, completed or failed" }),
});
export const tokenizerList = t.Object({ tokenizers: t.Array(tokenizerInfo) });
export const tokenizerStatus = t.Object({
  id: t.String(),
  status: t.String({ description: "pending, completed or failed" }),
  message: t.String(),
  vocab_size: t.Optional(t.Integer()),
});
