import { InvalidRequestError } from "../errors.ts";

/** One problem that TypeBox found. */
export interface SchemaProblem {
  readonly path: string;
  readonly message: string;
  readonly value: unknown;
  readonly schema: Readonly<Record<string, unknown>>;
  /** Problems of the variants of a union. */
  readonly errors?: readonly Iterable<SchemaProblem>[];
}

/** `/messages/0/role` as clients write it: `messages[0].role`. */
function paramName(path: string): string {
  return path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((name, part) => (/^\d+$/.test(part) ? `${name}[${part}]` : name === "" ? part : `${name}.${part}`), "");
}

/** What a union of `X | null` really complains about: the problem of X, at its deepest place. */
function deepest(problem: SchemaProblem): SchemaProblem {
  if (problem.errors === undefined) return problem;
  let best: SchemaProblem | undefined;
  /** Of a union of values. */
  const values: string[] = [];
  for (const variant of problem.errors) {
    for (const inner of variant) {
      if (inner.schema["type"] === "null") break;
      if ("const" in inner.schema) values.push(`'${String(inner.schema["const"])}'`);
      const found = deepest(inner);
      if (best === undefined || found.path.length > best.path.length) best = found;
      break;
    }
  }
  if (best !== undefined && best.path === problem.path && values.length > 1)
    return { ...best, message: `Expected one of ${values.join(", ")}` };
  return best ?? problem;
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? "a string" : String(value);
}

/** The first problem of a body as an error that names the field. */
export function invalidBody(problems: Iterable<SchemaProblem>): InvalidRequestError {
  for (const found of problems) {
    const problem = deepest(found);
    const param = paramName(problem.path);
    if (param === "") return new InvalidRequestError(`The body must be a JSON object, not ${describe(problem.value)}`);
    if (problem.value === undefined)
      return new InvalidRequestError(`Missing required parameter: '${param}'`, { param });
    const message = problem.message.charAt(0).toLowerCase() + problem.message.slice(1);
    return new InvalidRequestError(`Invalid '${param}': ${message}, got ${describe(problem.value)}`, { param });
  }
  return new InvalidRequestError("The body is not valid");
}
