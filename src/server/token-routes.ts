import type { TSchema } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { errorResponse } from "../apis/openai/errors.ts";
import { handleDetokenize } from "../apis/tokens/detokenize.ts";
import { addTokenizer, listTokenizers, removeTokenizer, tokenizerOrStatus } from "../apis/tokens/manage.ts";
import {
  addTokenizerRequest,
  detokenizeRequest,
  detokenizeResponse,
  tokenizeRequest,
  tokenizeResponse,
  tokenizerList,
  tokenizerStatus,
} from "../apis/tokens/schema.ts";
import { handleTokenize } from "../apis/tokens/tokenize.ts";
import { TokenizerNotFoundError } from "../errors.ts";
import type { ServerContext } from "./context.ts";
import { requestId } from "./request-id.ts";
import { type Begin, decodedParam, jsonBody, patient, routeDetail } from "./route-parts.ts";

const detail = routeDetail("Tokens", errorResponse);

/** Routes of the tokenizers. */
export function tokenRoutes(context: ServerContext, begin: Begin) {
  const { config } = context;
  const parse = (schema: TSchema) => jsonBody(begin, "req", context, schema);
  const unknown = (name: string) => new TokenizerNotFoundError(name);

  return new Elysia({ name: "collie-tokens", normalize: false })
    .post(
      "/v1/tokenize",
      ({ body, request, server }) => {
        patient(request, server); // a long text is silent while it is tokenized
        return handleTokenize(body, false, context, begin(request, "req"));
      },
      {
        parse: parse(tokenizeRequest),
        body: tokenizeRequest,
        detail: detail(
          "Token ids of a text, of several, or of a conversation",
          "SMG's form. `add_special_tokens` is false by default. With `messages` the chat template is applied as in Chat Completions.",
          tokenizeResponse,
        ),
      },
    )
    .post(
      "/tokenize",
      ({ body, request, server }) => {
        patient(request, server); // a long text is silent while it is tokenized
        return handleTokenize(body, true, context, begin(request, "req"));
      },
      {
        parse: parse(tokenizeRequest),
        body: tokenizeRequest,
        detail: detail(
          "Token ids, as from vLLM",
          "The same as /v1/tokenize, but `add_special_tokens` is true by default for a `prompt`.",
          tokenizeResponse,
        ),
      },
    )
    .post(
      "/v1/detokenize",
      ({ body, request, server }) => {
        patient(request, server); // a long text is silent while it is tokenized
        return handleDetokenize(body, { key: "text", skipByDefault: true }, context, begin(request, "req"));
      },
      {
        parse: parse(detokenizeRequest),
        body: detokenizeRequest,
        detail: detail("Text of token ids", "SMG's form. Special tokens are skipped by default.", detokenizeResponse),
      },
    )
    .post(
      "/detokenize",
      ({ body, request, server }) => {
        patient(request, server); // a long text is silent while it is tokenized
        return handleDetokenize(body, { key: "prompt", skipByDefault: false }, context, begin(request, "req"));
      },
      {
        parse: parse(detokenizeRequest),
        body: detokenizeRequest,
        detail: detail(
          "Text of token ids, as from vLLM",
          "The text is called `prompt`. Special tokens are kept by default.",
          t.Object({ prompt: detokenizeResponse.properties.text }),
        ),
      },
    )
    .get("/v1/tokenizers", () => listTokenizers(context), {
      detail: detail("List tokenizers", "Those of the models and those that were added.", tokenizerList),
    })
    .post(
      "/v1/tokenizers",
      async ({ body, request, set }) => {
        const scope = begin(request, "req");
        try {
          set.status = 202;
          set.headers["x-request-id"] = requestId(request, config);
          return await addTokenizer(body, context);
        } finally {
          scope.finish();
        }
      },
      {
        parse: parse(addTokenizerRequest),
        body: addTokenizerRequest,
        detail: detail(
          "Add a tokenizer",
          "It is loaded in the background; its status tells when it is ready. It is gone after a restart.",
          tokenizerStatus,
          202,
        ),
      },
    )
    .get("/v1/tokenizers/*", ({ params }) => tokenizerOrStatus(decodedParam(params["*"], unknown), context), {
      params: t.Object({ "*": t.String() }),
      detail: { tags: ["Tokens"], summary: "One tokenizer, or its status; its name may hold slashes" },
    })
    .delete("/v1/tokenizers/*", ({ params }) => removeTokenizer(decodedParam(params["*"], unknown), context), {
      params: t.Object({ "*": t.String() }),
      detail: { tags: ["Tokens"], summary: "Remove a tokenizer that was added" },
    });
}
