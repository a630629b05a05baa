import { ConfigError } from "../config/config-error.ts";
import { UnsupportedError } from "../errors.ts";
import { familiesOf } from "../parsers/names.ts";

/** What is wrong with a pair of parsers' names: with a typing error in one, calls would go through as text. Undefined: nothing. */
export function parserProblem(reasoning: string | undefined, tool: string | undefined): string | undefined {
  try {
    familiesOf(reasoning, tool);
    return undefined;
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    return error.message;
  }
}

/** Throws a ConfigError for flags that name parsers which do not exist, or do not go together. */
export function checkParsers(reasoning: string | undefined, tool: string | undefined): void {
  const problem = parserProblem(reasoning, tool);
  if (problem !== undefined) throw new ConfigError([problem]);
}
