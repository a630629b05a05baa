import { UnsupportedError } from "../../errors.ts";
import type { PoolingTraits } from "../../fleet/snapshot.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { embedAll } from "../pooling/embed.ts";
import { poolingInputs } from "../pooling/inputs.ts";
import { tokenRules } from "../pooling/tokens.ts";
import { sigmoid, softmax } from "../pooling/vectors.ts";
import type { ClassifyRequest } from "./schema.ts";

type Classes = NonNullable<PoolingTraits["classes"]>;

/**
 * Labels of texts: the engine's numbers are taken as logits of the labels that the model's config.json names. Probabilities are made of
 * them as vLLM does: softmax, of a single label or independent ones the sigmoid, of a regression the numbers themselves. Throws
 * GatewayErrors; the scope is finished afterwards.
 */
export async function handleClassify(
  body: ClassifyRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const model = context.fleet.model(body.model);
    const { classes } = model.entry.pooling ?? {};
    const refuse = (why: string): never => {
      throw new UnsupportedError(`The model '${model.entry.id}' does not classify: ${why}`, { param: "model" });
    };
    if (classes === undefined) return refuse("its configuration has no labels");
    const inputs = poolingInputs(body.input, "input", model.tokenizer.vocabSize);
    const { vectors, promptTokens } = await embedAll(inputs, tokenRules(body, model), body, model, context, scope);
    const data = vectors.map((logits, index) => {
      if (logits.length !== classes.labels.length)
        return refuse(`its engine gives ${logits.length} numbers for ${classes.labels.length} labels`);
      const activation = body.use_activation === false ? "none" : classes.activation;
      return { index, ...classified(logits, { ...classes, activation }) };
    });
    const answer = {
      id: scope.id.startsWith("classify-") ? scope.id : `classify-${scope.id}`,
      object: "list",
      created: Math.floor(Date.now() / 1000),
      model: body.model,
      data,
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    };
    return Response.json(answer, { headers: { "x-request-id": scope.id } });
  } finally {
    scope.finish();
  }
}

function classified(logits: Float32Array, { labels, activation }: Classes) {
  const probs =
    activation === "softmax" ? softmax(logits) : activation === "sigmoid" ? sigmoid(logits) : Array.from(logits);
  const best = probs.indexOf(probs.reduce((most, value) => Math.max(most, value)));
  return { label: labels[best], probs, num_classes: labels.length };
}
