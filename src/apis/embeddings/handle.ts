import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { embedAll, refuseGenerating } from "../pooling/embed.ts";
import { poolingInputs } from "../pooling/inputs.ts";
import { tokenRules } from "../pooling/tokens.ts";
import { shortened } from "../pooling/vectors.ts";
import { JsonBody } from "../tokens/json-body.ts";
import { takingTurns } from "../tokens/turns.ts";
import type { EmbeddingsRequest } from "./schema.ts";

/** Answers a validated embeddings request. Throws GatewayErrors; the scope is finished afterwards. */
export async function handleEmbeddings(
  body: EmbeddingsRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    refuseUnsupported(body);
    const model = context.fleet.model(body.model);
    refuseGenerating(model);
    const dimensions = body.dimensions ?? undefined;
    if (dimensions !== undefined) checkDimensions(dimensions, model);
    const inputs = poolingInputs(body.input, "input", model.tokenizer.vocabSize);
    const { vectors, promptTokens } = await embedAll(inputs, tokenRules(body, model), body, model, context, scope);
    const turn = takingTurns(scope.signal);
    const out = new JsonBody(turn);
    out.raw('{"object":"list","data":[');
    for (const [index, whole] of vectors.entries()) {
      const size = dimensions ?? (body.normalize === true ? whole.length : undefined);
      const vector = size === undefined ? whole : cutTo(size, whole, model);
      const embedding = body.encoding_format === "base64" ? base64(vector) : Array.from(vector);
      out.raw(`${index > 0 ? "," : ""}${JSON.stringify({ object: "embedding", index, embedding })}`);
      const due = turn();
      if (due !== undefined) await due;
    }
    const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
    out.raw(`],"model":${JSON.stringify(body.model)},"usage":${JSON.stringify(usage)}}`);
    return out.response({ "x-request-id": scope.id });
  } finally {
    scope.finish();
  }
}

function refuseUnsupported(body: EmbeddingsRequest): void {
  const { endianness, messages } = body;
  if (endianness === "big") throw new UnsupportedError("Bytes are little-endian only", { param: "endianness" });
  if ((messages ?? undefined) !== undefined)
    throw new UnsupportedError("Embeddings of messages are not supported: give their text as input", {
      param: "messages",
    });
  for (const [param, usual] of USUAL) {
    const asked = body[param] ?? usual;
    if (asked !== usual)
      throw new UnsupportedError(`${param} ${JSON.stringify(asked).slice(0, 40)} is not supported, only ${usual}`, {
        param,
      });
  }
}

/** What changes the numbers or their bytes, and the one value that engines and the gateway know. */
const USUAL = [
  ["normalize", true],
  ["use_activation", true],
  ["embed_dtype", "float32"],
  ["padding", "do_not_pad"],
] as const;

const PARAM = { param: "dimensions" };

function checkDimensions(dimensions: number, { entry }: Model): void {
  const sizes = entry.pooling?.matryoshka;
  if (sizes === undefined)
    throw new UnsupportedError(
      `The model '${entry.id}' is not trained for vectors of other sizes: leave dimensions out`,
      PARAM,
    );
  if (sizes !== "any" && !sizes.includes(dimensions))
    throw new InvalidRequestError(`The model '${entry.id}' has vectors of ${sizes.join(", ")} dimensions`, PARAM);
}

function cutTo(dimensions: number, vector: Float32Array, { entry }: Model): Float32Array {
  if (dimensions <= vector.length) return shortened(vector, dimensions);
  throw new InvalidRequestError(`Vectors of the model '${entry.id}' have ${vector.length} dimensions`, PARAM);
}

/** The numbers as little-endian 32-bit floats, which is how every machine that this runs on has them. */
const base64 = ({ buffer, byteOffset, byteLength }: Float32Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");
