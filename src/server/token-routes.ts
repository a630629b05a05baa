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
import { readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import { requestId } from "./request-id.ts";
import type { RequestScope } from "./request-scope.ts";

const json = (description: string, schema: object) => ({ description, content: { "application/json": { schema } } });
const detail = (summary: string, description: string, answer: object, status = 200) => ({
  tags: ["Tokens"],
  summary,
  description,
  responses: {
    [status]: json("The answer", answer),
    "4XX": json("The request is wrong", errorResponse),
    "5XX": json("It could not be served", errorResponse),
  },
});

/** Routes of the tokenizers. `begin` gives the scope of a request, and finishes it if the request fails before it is handled. */
export function tokenRoutes(context: ServerContext, begin: (request: Request) => RequestScope) {
  const { config } = context;
  const parse = ({ request }: { request: Request }) => {
    begin(request);
    return readJson(request, config.maxPayloadSize);
  };
  const patient = (request: Request, server: { timeout(request: Request, seconds: number): void } | null) =>
    server?.timeout(request, 0); // a long text is silent while it is tokenized

  return new Elysia({ name: "collie-tokens", normalize: false })
    .post(
      "/v1/tokenize",
      ({ body, request, server }) => {
        patient(request, server);
        return handleTokenize(body, false, context, begin(request));
      },
      {
        parse,
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
        patient(request, server);
        return handleTokenize(body, true, context, begin(request));
      },
      {
        parse,
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
        patient(request, server);
        return handleDetokenize(body, { key: "text", skipByDefault: true }, context, begin(request));
      },
      {
        parse,
        body: detokenizeRequest,
        detail: detail("Text of token ids", "SMG's form. Special tokens are skipped by default.", detokenizeResponse),
      },
    )
    .post(
      "/detokenize",
      ({ body, request, server }) => {
        patient(request, server);
        return handleDetokenize(body, { key: "prompt", skipByDefault: false }, context, begin(request));
      },
      {
        parse,
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
        const scope = begin(request);
        try {
          set.status = 202;
          set.headers["x-request-id"] = requestId(request, config);
          return await addTokenizer(body, context);
        } finally {
          scope.finish();
        }
      },
      {
        parse,
        body: addTokenizerRequest,
        detail: detail(
          "Add a tokenizer",
          "It is loaded in the background; its status tells when it is ready. It is gone after a restart.",
          tokenizerStatus,
          202,
        ),
      },
    )
    .get("/v1/tokenizers/*", ({ params }) => tokenizerOrStatus(decoded(params["*"]), context), {
      params: t.Object({ "*": t.String() }),
      detail: { tags: ["Tokens"], summary: "One tokenizer, or its status; its name may hold slashes" },
    })
    .delete("/v1/tokenizers/*", ({ params }) => removeTokenizer(decoded(params["*"]), context), {
      params: t.Object({ "*": t.String() }),
      detail: { tags: ["Tokens"], summary: "Remove a tokenizer that was added" },
    });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TokenizerNotFoundError(text);
  }
}
