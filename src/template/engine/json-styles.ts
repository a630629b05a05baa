/** In which styles a template writes JSON. */
import { ChatTemplateError } from "../errors.ts";
import { childrenOf, type Expression, type FilterOrTest, type Statement } from "./ast.ts";
import { bind } from "./calls.ts";
import { FILTERS } from "./filters.ts";
import { isSame, type Style, styleOf } from "./json.ts";
import { Tuple, type Value } from "./values.ts";

/** The styles of its `tojson`, as far as they are written in the template. */
export function jsonStyles(nodes: Iterable<Statement | Expression>, found: Style[] = []): readonly Style[] {
  for (const node of nodes) {
    const style = node.type === "filter" && node.name === "tojson" ? styleIn(node) : undefined;
    if (style !== undefined && !found.some((each) => isSame(each, style))) found.push(style);
    jsonStyles(childrenOf(node), found);
  }
  return found;
}

/** Undefined: only the run can tell. */
function styleIn({ args, kwargs, dynArgs, dynKwargs }: FilterOrTest): Style | undefined {
  const positional = args.map(constantOf);
  const named = kwargs.map(({ key, value }) => [key, constantOf(value)] as const);
  const isKnown = [...positional, ...named.map(([, value]) => value)].every((value) => value !== undefined);
  if (!isKnown || dynArgs !== undefined || dynKwargs !== undefined) return undefined;
  const { signature } = FILTERS.get("tojson")!;
  try {
    const [, ...how] = bind(signature, [null, ...(positional as Value[])], new Map(named as [string, Value][]));
    return styleOf(...(how as [Value, Value, Value, Value]));
  } catch (error) {
    if (error instanceof ChatTemplateError) return undefined;
    throw error;
  }
}

function constantOf(node: Expression): Value | undefined {
  if (node.type === "constant") return node.value;
  if (node.type !== "tuple") return undefined;
  const items = node.items.map(constantOf);
  return items.every((item) => item !== undefined) ? new Tuple(items as Value[]) : undefined;
}
