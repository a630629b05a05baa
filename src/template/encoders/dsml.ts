/** DSML: how DeepSeek's models write tool calls. */
import type { Steps } from "../../steps.ts";
import { type Dict, isDict, textOf, type Value } from "../engine/values.ts";
import { joined, refuse } from "./conversation.ts";
import type { Tags } from "./deepseek-text.ts";
import { type Call, functionOf, json, parsed } from "./fields.ts";

/** One JSON text a line. */
export const schemaLines = (tools: readonly Value[]): string => tools.map((tool) => json(functionOf(tool))).join("\n");

/** Arguments as an object: V3.2 knows nothing else. */
export function strictArguments({ name, arguments: given }: Call): Dict {
  if (given === null) return new Map();
  const text = textOf(given);
  const value = text === undefined ? given : (parsed(text) ?? refuse(`The arguments of '${name}' are not JSON`));
  return isDict(value) ? value : refuse(`The arguments of '${name}' must be a JSON object`);
}

/** V4 writes arguments that are no JSON as the one parameter `arguments`. */
export function wrappedArguments(call: Call): Dict {
  const text = textOf(call.arguments);
  return text !== undefined && parsed(text) === undefined ? new Map([["arguments", text]]) : strictArguments(call);
}

/** V4.1 also unpacks a JSON text inside of a JSON text, and wraps whatever does not end as an object. */
export function lenientArguments({ arguments: given }: Call): Dict {
  if (given === null) return new Map();
  let value: Value = given;
  for (let depth = 0; depth < 2; depth++) {
    const text = textOf(value);
    if (text === undefined) break;
    const inner = parsed(text);
    if (inner === undefined) break;
    value = inner;
  }
  return isDict(value) ? value : new Map([["arguments", given]]);
}

/** The block of calls, without what stands before it. */
export function* callsText(calls: readonly Call[], tags: Tags, argumentsOf: (call: Call) => Dict): Steps<string> {
  const callText = (call: Call): string => {
    const parameters = Array.from(argumentsOf(call), ([key, value]) => {
      const text = textOf(value);
      const attributes = `name="${String(key)}" string="${text !== undefined}"`;
      return `<${tags.parameter} ${attributes}>${text ?? json(value)}</${tags.parameter}>`;
    });
    return `<${tags.invoke} name="${call.name}">\n${parameters.join("\n")}\n</${tags.invoke}>`;
  };
  return `<${tags.block}>\n${yield* joined(calls, callText, "\n")}\n</${tags.block}>`;
}
