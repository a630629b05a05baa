import { Input, skipSpace } from "../input.ts";
import { CLOSE_OBJECT, COLON, heldJson, parseJson, QUOTE, unquote } from "../json.ts";
import type { ToolIndex } from "../tools.ts";

/** An id that says nothing about the tool. */
export const isCallId = (id: string): boolean => /^(?:call|toolu|chatcmpl)[-_]|^\d*$/.test(id);

/**
 * The tool that an id of Kimi names: `functions.NAME:INDEX`, also without `functions.`, without the index, or without any
 * punctuation (then the longest declared name that fits).
 */
export function kimiName(id: string, tools: ToolIndex): string {
  const bare = id.replace(/^functions\./, "");
  const name = bare.replace(/:\d+$/, "");
  if (tools.has(name)) return name;
  let best = "";
  for (const rest of [bare, id.replace(/^functions[.:_]?/, "")]) {
    for (const known of tools.names()) {
      if (known.length > best.length && rest.startsWith(known) && /^[:._-]?\d*$/.test(rest.slice(known.length)))
        best = known;
    }
  }
  return best === "" ? name : best;
}

/** Takes the member `name` out of an object's text; the rest keeps its bytes. */
export function takeName(raw: string): { readonly name: string; readonly rest: string } | undefined {
  const members = membersOf(raw);
  const name = members?.find(([key]) => key === "name")?.[1];
  const value = name === undefined ? undefined : parseJson(name);
  if (members === undefined || typeof value !== "string" || value === "") return undefined;
  const others = members.filter(([key]) => key !== "name");
  const [only] = others;
  if (
    others.length === 1 &&
    only !== undefined &&
    /^(?:arguments|parameters)$/.test(only[0]) &&
    only[1].startsWith("{")
  ) {
    return { name: value, rest: only[1] };
  }
  return { name: value, rest: `{${others.map(([, , text]) => text).join(", ")}}` };
}

/** Key, raw value and raw text of each member. */
function membersOf(raw: string): [string, string, string][] | undefined {
  const input = new Input();
  input.feed(raw);
  input.ended = true;
  input.at = 1;
  const members: [string, string, string][] = [];
  for (;;) {
    const c = skipSpace(input).next().value;
    if (c === CLOSE_OBJECT) return members;
    const from = input.at;
    const key = c === QUOTE ? heldJson(input).next().value : undefined;
    skipSpace(input).next();
    if (key === undefined || input.text.charCodeAt(input.at++) !== COLON) return undefined;
    skipSpace(input).next();
    const value = heldJson(input).next().value;
    if (value === undefined) return undefined;
    members.push([unquote(key), value, raw.slice(from, input.at)]);
    skipSpace(input).next();
    if (input.text[input.at] === ",") input.at++;
  }
}
