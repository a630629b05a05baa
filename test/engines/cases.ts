import { completionCases } from "./cases/completions.ts";
import { constraintsCases } from "./cases/constraints.ts";
import { endsCases } from "./cases/ends.ts";
import { errorsCases } from "./cases/errors.ts";
import { forcedTextCases } from "./cases/forced-texts.ts";
import { promptsCases, textCases } from "./cases/prompts.ts";
import { realCases } from "./cases/real-model.ts";
import { type EngineCase, type Row, user } from "./cases/row.ts";
import { logprobsCases, samplingCases } from "./cases/sampling.ts";

const tinyRows: readonly Row[] = [
  ...textCases,
  ...promptsCases,
  ...samplingCases,
  ...endsCases,
  ...logprobsCases,
  ...constraintsCases,
  ...forcedTextCases,
  ...errorsCases,
];

/** Every request, in the order in which they are sent. */
export const engineCases: readonly EngineCase[] = [
  ...tinyRows.map(
    ([name, body, rest]): EngineCase => ({
      name,
      model: "tiny",
      body: { model: "tiny", messages: user("Hello"), return_token_ids: true, ...body },
      ...rest,
    }),
  ),
  ...realCases.map(
    ([name, body, rest]): EngineCase => ({
      name: `SmolLM2: ${name}`,
      model: "smollm2",
      body: { model: "smollm2", return_token_ids: true, ...body },
      ...rest,
    }),
  ),
  ...completionCases.flatMap(([name, body, rest]) =>
    (["tiny", "smollm2"] as const).map(
      (model): EngineCase => ({ name: `completions: ${name}, ${model}`, model, body: { model, ...body }, ...rest }),
    ),
  ),
];
