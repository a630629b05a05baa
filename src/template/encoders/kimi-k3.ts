/**
 * Kimi K3: XTML. The format is that of the model's published `encoding_k3.py`, with the default effort of its tokenizer. Text of users
 * and tools is to be encoded without special tokens, so a prompt is a list of segments; as one text, markers in it would become real.
 */
import { atOnce, PIECE_ITEMS, type Steps } from "../../steps.ts";
import type { ChatTemplate, Segment, TemplateInput } from "../chat-template.ts";
import { PLAIN, type Style } from "../engine/json.ts";
import { strip } from "../engine/strings.ts";
import { str } from "../engine/text.ts";
import { type Dict, isDict, isNumber, textOf, truthy, type Value } from "../engine/values.ts";
import type { PreparedMessage } from "../prepare-messages.ts";
import { type Conversation, refuse, rendered } from "./conversation.ts";
import { type Call, callsOf, field, json, parsed, partsOf, reasoningOf, roleOf, SORTED, sortedJson } from "./fields.ts";
import { effortOf, levelOf, thinkingOf } from "./thinking.ts";

const IMAGE = "<|kimi_image_placeholder|>";
const control = (text: string): Segment => ({ text, special: true });
const OPEN = control("<|open|>");
const CLOSE = control("<|close|>");
const SEPARATOR = control("<|sep|>");
const END_OF_MESSAGE = control("<|end_of_msg|>");

const plain = (text: string): readonly Segment[] => (text === "" ? [] : [{ text, special: false }]);
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");

type Attributes = readonly (readonly [name: string, value: string])[];

const open = (tag: string, attributes: Attributes = []): readonly Segment[] => [
  OPEN,
  ...plain(tag),
  ...attributes.flatMap(([name, value]) => [` ${name}`, '="', escaped(value), '"'].flatMap(plain)),
  SEPARATOR,
];
const element = (tag: string, attributes: Attributes, inner: readonly Segment[]): readonly Segment[] => [
  ...open(tag, attributes),
  ...inner,
  CLOSE,
  ...plain(tag),
  SEPARATOR,
];
const message = (attributes: Attributes, inner: readonly Segment[]): readonly Segment[] => [
  ...element("message", attributes, inner),
  END_OF_MESSAGE,
];
/** What the system says by itself. */
const notice = (type: string, body: string): readonly Segment[] =>
  message([["role", "system"], ["type", type]], plain(body)); // biome-ignore format: one line

/** Levels that the model knows; clients' other levels go to those that its maker's service takes for them. */
const LEVELS: ReadonlyMap<string, string> = new Map([
  ["low", "low"],
  ["medium", "high"],
  ["high", "high"],
  ["xhigh", "max"],
  ["max", "max"],
]);

/** The prompt's segments, each to be encoded by itself. Throws as `ChatTemplate.render`. */
export const renderSegments = (input: TemplateInput): readonly Segment[] => atOnce(segmentsSteps(input));

/** The same in steps; `ahead` as in `rendered`. */
const segmentsSteps = (input: TemplateInput, ahead?: readonly Style[]): Steps<readonly Segment[]> =>
  rendered(
    input,
    encode,
    (segments, shorten) => cut(segments, shorten(textOfAll(segments)).length),
    ahead && { ahead },
  );

/** All segments as one text: as `renderSegments` where no text holds a marker. */
export const kimiK3: ChatTemplate = {
  needsNullContent: false,
  render: (input) => textOfAll(renderSegments(input)),
  renderSegments,
  renderSegmentsSteps: (input) => segmentsSteps(input, [PLAIN, SORTED]),
};

const textOfAll = (segments: readonly Segment[]): string => segments.map(({ text }) => text).join("");

function cut(segments: readonly Segment[], length: number): readonly Segment[] {
  const kept: Segment[] = [];
  let left = length;
  for (const segment of segments) {
    if (left <= 0) break;
    kept.push(segment.text.length <= left ? segment : { ...segment, text: segment.text.slice(0, left) });
    left -= segment.text.length;
  }
  return kept;
}

function* encode({ messages, tools, variables, addGenerationPrompt }: Conversation): Steps<readonly Segment[]> {
  const thinking = thinkingOf(variables, true);
  const segments = [
    ...(tools.length === 0
      ? []
      : toolsNotice(tools, "# Tools\nHere are the available tools, described in JSONSchema.")),
    ...(thinking ? effortNotice(variables) : []),
  ];
  let count = 0;
  for (const { message: each, calls, number } of inCallOrder(messages)) {
    for (const segment of messageSegments(each, calls, number, thinking)) segments.push(segment);
    if (++count % PIECE_ITEMS === 0) yield;
  }
  segments.push(
    ...choiceNotice(variables.get("tool_choice") ?? null),
    ...formatNotice(variables.get("response_format") ?? null),
  );
  if (addGenerationPrompt)
    segments.push(...open("message", [["role", "assistant"]]), ...open(thinking ? "think" : "response"));
  return segments;
}

const toolsNotice = (tools: Value, heading: string): readonly Segment[] =>
  notice("tool-declare", `${heading}\n\n\`\`\`json\n${sortedJson(tools)}\n\`\`\``);

const NEW_TOOLS = `## New Tools Available
The system dynamically extends the toolset via lazy-loading.
You have access to all existing and extended tools.
Here are the specs for the extended tools.`;

function effortNotice(variables: ReadonlyMap<string, Value>): readonly Segment[] {
  const own = effortOf(variables, "thinking_effort");
  const asked = levelOf(variables, "reasoning_effort");
  const effort = own ?? (asked === undefined ? "max" : (LEVELS.get(String(asked)) ?? asked));
  if (!["low", "high", "max"].includes(String(effort)))
    return refuse(`The model knows no thinking effort '${effort}'`, "reasoning_effort");
  return notice(
    "thinking-effort",
    "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), " +
      `supported values include \`low\`, \`medium\`, \`high\`, and \`max\`.\nNow the system is invoked with \`thinking_effort=${effort}\`.`,
  );
}

function choiceNotice(choice: Value): readonly Segment[] {
  if (choice !== "required" && choice !== "none") return [];
  const demand = choice === "required" ? "call tools" : "NOT call any tools";
  return notice(
    "tool-choice",
    `The system is invoked with \`tool_choice=${choice}\`.\nYou MUST ${demand} in the next message.`,
  );
}

function formatNotice(format: Value): readonly Segment[] {
  const type = isDict(format) ? (format.get("type") ?? null) : format;
  if (type !== "json_object" && type !== "json_schema") return [];
  const demand = `The system is invoked with \`response_format=${type}\`.
Your response must be raw JSON data without markdown code blocks (\`\`\`json) or any additional formatting.`;
  if (type === "json_object") return notice("response-format", demand);
  const schema = `The JSON data must match the following schema:\n\`\`\`json\n${sortedJson(schemaOf(format))}\n\`\`\``;
  return notice("response-format", `${demand}\n${schema}`);
}

function schemaOf(format: Value): Value {
  const given = isDict(format) ? field(format, "json_schema") : null;
  if (!isDict(given)) return given;
  return given.get("schema") ?? given.get("json_schema") ?? given;
}

/** A message; of a tool's result also the calls before it and its number, from 1. */
interface Placed {
  readonly message: PreparedMessage;
  readonly calls: readonly Call[];
  readonly number: number;
}

/** The messages with each run of tool results in the order of the calls, if all of its calls are known. */
function inCallOrder(messages: readonly PreparedMessage[]): readonly Placed[] {
  const placed: Placed[] = [];
  let calls: readonly Call[] = [];
  let number = 0;
  for (let at = 0; at < messages.length; ) {
    let end = at;
    while (end < messages.length && roleOf(messages[end]!) === "tool") end++;
    const run = messages.slice(at, end);
    for (const each of sortedRun(run, calls)) placed.push({ message: each, calls, number: ++number });
    at += run.length;
    const next = messages[at++];
    if (next === undefined) break;
    if (roleOf(next) === "assistant") {
      calls = callsOf(next);
      number = 0;
    }
    placed.push({ message: next, calls, number });
  }
  return placed;
}

function sortedRun(run: readonly PreparedMessage[], calls: readonly Call[]): readonly PreparedMessage[] {
  const places = new Map<string | undefined, number>();
  for (const [at, { id }] of run.length === 0 ? [] : calls.entries()) if (!places.has(id)) places.set(id, at);
  const found = run.map((each) => {
    const id = each.get("tool_call_id") ?? each.get("id") ?? null;
    const at = id === null ? -1 : (places.get(str(id)) ?? -1);
    return { at, message: at < 0 ? each : new Map(each).set("tool", calls[at]!.name) };
  });
  if (found.some(({ at }) => at < 0)) return run;
  return found.toSorted((a, b) => a.at - b.at).map((each) => each.message);
}

function messageSegments(
  each: PreparedMessage,
  calls: readonly Call[],
  number: number,
  thinking: boolean,
): readonly Segment[] {
  const name = field(each, "name");
  const named: Attributes = truthy(name) ? [["name", str(name)]] : [];
  const role = roleOf(each);
  switch (role) {
    case "user":
      return message([["role", "user"], ...named], contentSegments(each));
    case "system":
    case "developer":
      if (truthy(field(each, "tools"))) return toolsNotice(field(each, "tools"), NEW_TOOLS);
      return message([["role", "system"], ...named], contentSegments(each));
    case "assistant":
      return message([["role", "assistant"], ...named], assistantSegments(each, thinking));
    case "tool": {
      const tool = each.get("tool") ?? each.get("name") ?? calls[number - 1]?.name ?? null;
      if (tool === null) return refuse("A tool message has neither a name nor a tool call before it");
      return message([["role", "tool"], ["tool", str(tool)], ["index", String(number)]], contentSegments(each)); // biome-ignore format: one line
    }
  }
  return refuse(`The model's prompt format has no role '${role}'`);
}

const contentSegments = (each: PreparedMessage): readonly Segment[] =>
  partsOf(field(each, "content")).flatMap((part) => (part === "image" ? [control(IMAGE)] : plain(part.text)));

function assistantSegments(each: PreparedMessage, thinking: boolean): readonly Segment[] {
  const reasoning = reasoningOf(each);
  const calls = callsOf(each);
  return [
    ...(thinking ? element("think", [], strip(reasoning, undefined) === "" ? [] : plain(reasoning)) : []),
    ...element("response", [], contentSegments(each)),
    ...(calls.length === 0 ? [] : element("tools", [], calls.flatMap(callSegments))),
  ];
}

function callSegments(call: Call, at: number): readonly Segment[] {
  const given = argumentsOf(call);
  const inner = isDict(given)
    ? Array.from(given, ([key, value]) => argumentSegments(String(key), value)).flat()
    : element("json", [["type", "object"]], plain(given));
  return element("call", [["tool", call.name], ["index", String(at + 1)]], inner); // biome-ignore format: one line
}

const argumentSegments = (key: string, value: Value): readonly Segment[] =>
  element("argument", [["key", key], ["type", typeOf(value)]], plain(textOf(value) ?? json(value))); // biome-ignore format: one line

function typeOf(value: Value): string {
  if (typeof value === "boolean") return "boolean";
  if (value === null) return "null";
  if (isNumber(value)) return "number";
  if (textOf(value) !== undefined) return "string";
  return isDict(value) ? "object" : "array";
}

/** An object, or the text that is no JSON. */
function argumentsOf({ name, arguments: given }: Call): Dict | string {
  const text = textOf(given);
  if (given === null || (text !== undefined && strip(text, undefined) === "")) return new Map();
  const value = text === undefined ? given : parsed(text);
  if (value === undefined) return text ?? "";
  return isDict(value) ? value : refuse(`The arguments of '${name}' must be a JSON object`);
}
