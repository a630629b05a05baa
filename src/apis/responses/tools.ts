/** Tools of Responses: flat functions and custom tools, and namespaces of them, which models are told as one list. */
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { ToolChoice, ToolDefinition } from "../../generation/conversation.ts";
import { functionDefinition, grammarOf, isObject, wordChoice } from "../shared/tools.ts";
import type { Loose } from "./schema.ts";

/** How a client knows a tool. */
export interface ToolOrigin {
  readonly name: string;
  readonly namespace?: string;
}

export interface ResponseTools {
  /** Those that the model is offered; their names are unique. */
  readonly definitions: readonly ToolDefinition[];
  /** The name that the model knows a client's tool by, also of a tool that the request no longer has. */
  modelName(tool: ToolOrigin): string;
  /** The tool that the model means. */
  origin(modelName: string): ToolOrigin;
  /** Types of tools that run on servers of others: they are left out. */
  readonly ignored: readonly string[];
}

/** As Chat Completions: OpenAI takes 64 characters without dots; tools of MCP servers have both. */
const NAME = /^[a-zA-Z0-9_.-]{1,128}$/;
const LONGEST_NAME = 128;

const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });
const missing = (param: string) => wrong(param, `Missing required parameter: '${param}'`);

/** A tool with its place in the request, and the same with the numbers and the order of keys as sent. */
interface Sent {
  readonly tool: Loose;
  readonly lossless: unknown;
  readonly at: string;
  readonly namespace?: string;
}

/**
 * Reads the tools of a request. `lossless`: the same list by `parseLossless`, where the request's text is known; templates print it.
 * Throws InvalidRequestError.
 */
export function responseTools(tools: readonly Loose[], lossless?: readonly unknown[]): ResponseTools {
  const ignored = new Set<string>();
  const sent = tools.flatMap((tool, i) => unfolded({ tool, lossless: lossless?.[i] ?? tool, at: `tools[${i}]` }));
  const servers = new Set<string>();
  const own: Sent[] = [];
  for (const each of sent) {
    const type = typeOf(each);
    if (type === "function" || type === "custom") own.push(each);
    else {
      if (type === "mcp") checkServer(each, servers);
      ignored.add(type);
    }
  }
  const names = new Names(own);
  const origins = new Map<string, ToolOrigin>();
  const definitions = own.map((each): ToolDefinition => {
    const origin = originOf(each);
    const name = names.of(origin);
    origins.set(name, origin);
    return definition(each, name);
  });
  return {
    definitions,
    modelName: (tool) => names.of(tool),
    origin: (name) => origins.get(name) ?? { name },
    ignored: [...ignored],
  };
}

function typeOf({ tool, at }: Sent): string {
  const { type } = tool;
  if (typeof type !== "string" || type === "") throw missing(`${at}.type`);
  return type;
}

/** The tools of a namespace in its place. */
function unfolded(sent: Sent): Sent[] {
  if (typeOf(sent) !== "namespace") return [sent];
  const { tool, lossless, at } = sent;
  const namespace = nameAt(tool["name"], `${at}.name`);
  const { tools } = tool;
  if (!Array.isArray(tools)) throw missing(`${at}.tools`);
  const inner = member(lossless, "tools");
  return tools.map((each: unknown, i) => {
    if (!isObject(each)) throw wrong(`${at}.tools[${i}]`, `${at}.tools[${i}] must be an object`);
    const same = Array.isArray(inner) ? (inner[i] as unknown) : undefined;
    return { tool: each, lossless: same ?? each, at: `${at}.tools[${i}]`, namespace };
  });
}

function nameAt(name: unknown, param: string): string {
  if (name === undefined || name === null || name === "") throw missing(param);
  if (typeof name !== "string" || !NAME.test(name))
    throw wrong(param, `${param} must be 1 to ${LONGEST_NAME} letters, digits, '_', '-' or '.'`);
  return name;
}

function originOf({ tool, namespace, at }: Sent): ToolOrigin {
  const name = nameAt(tool["name"], `${at}.name`);
  return namespace === undefined ? { name } : { name, namespace };
}

function definition({ tool, lossless, at }: Sent, name: string): ToolDefinition {
  const told = tool["description"];
  const description = typeof told === "string" && told !== "" ? told : undefined;
  if (tool["type"] === "custom") {
    const grammar = isObject(tool["format"]) ? grammarOf(tool["format"], `${at}.format`) : undefined;
    return { type: "custom", name, strict: false, ...(description && { description }), ...(grammar && { grammar }) };
  }
  const { parameters } = tool;
  if (parameters !== undefined && parameters !== null && !isObject(parameters))
    throw wrong(`${at}.parameters`, `${at}.parameters must be an object`);
  const shown = new Map<string, unknown>([["name", name]]);
  if (description !== undefined) shown.set("description", description);
  if (parameters) shown.set("parameters", member(lossless, "parameters") ?? parameters);
  const declaration = new Map<string, unknown>([
    ["type", "function"],
    ["function", shown],
  ]);
  return functionDefinition({ name, description, parameters, strict: tool["strict"] === true }, declaration);
}

/** A member of an object as `JSON.parse` or as `parseLossless` gives it. */
function member(value: unknown, name: string): unknown {
  if (value instanceof Map) return value.get(name);
  return isObject(value) ? value[name] : undefined;
}

/** Servers of the Model Context Protocol are not asked yet, but a request that could not work anywhere is told so. */
function checkServer({ tool, at }: Sent, seen: Set<string>): void {
  const { server_label: label, server_url: url, connector_id: connector, tunnel_id: tunnel } = tool;
  if (typeof label !== "string" || !NAME.test(label))
    throw wrong(
      `${at}.server_label`,
      `${at}.server_label must be 1 to ${LONGEST_NAME} letters, digits, '_', '-' or '.'`,
    );
  if (seen.has(label)) throw wrong(`${at}.server_label`, `${at}.server_label: '${label}' is there twice`);
  seen.add(label);
  const ways = [url, connector, tunnel].filter((way) => way !== undefined && way !== null);
  if (ways.length !== 1)
    throw wrong(`${at}.server_url`, `${at} needs exactly one of server_url, connector_id and tunnel_id`);
}

/** Names for the model: a tool of a namespace becomes `namespace__name`, with a number where that is taken. */
class Names {
  private readonly taken = new Set<string>();
  private readonly flat = new Map<string, string>();

  constructor(sent: readonly Sent[]) {
    const origins = sent.map(originOf);
    for (const { name, namespace } of origins) if (namespace === undefined) this.taken.add(name);
    for (const origin of origins) this.of(origin);
  }

  of({ name, namespace }: ToolOrigin): string {
    if (namespace === undefined) return name;
    const key = `${namespace}\0${name}`;
    const known = this.flat.get(key);
    if (known !== undefined) return known;
    const base = `${namespace}__${name}`.slice(0, LONGEST_NAME);
    let found = base;
    for (let n = 2; this.taken.has(found); n++) found = `${base.slice(0, LONGEST_NAME - 1 - `${n}`.length)}_${n}`;
    this.taken.add(found);
    this.flat.set(key, found);
    return found;
  }
}

/** The tools of a request's input: `additional_tools`, and those that a search has found. */
export const toolsOfItems = (items: readonly Loose[]): Loose[] =>
  items
    .filter(({ type }) => type === "additional_tools" || type === "tool_search_output")
    .flatMap(({ tools }) => (Array.isArray(tools) ? tools.filter(isObject) : []));

/** `tool_choice` of a request. Throws InvalidRequestError. */
export function responseToolChoice(given: string | Loose | null | undefined, tools: ResponseTools): ToolChoice {
  const found = given === undefined || given === null ? undefined : choice(given, tools);
  if (tools.definitions.length > 0) return found ?? { mode: "auto" };
  if (found?.mode === "required") throw wrong("tool_choice", "tool_choice needs tools that are run by the client");
  return { mode: "none" };
}

function choice(given: string | Loose, tools: ResponseTools): ToolChoice {
  if (typeof given === "string") return wordChoice(given, "tool_choice");
  const { type } = given;
  if (type === "function" || type === "custom")
    return { mode: "required", named: oneNamed(given, new NamedTools(tools), "tool_choice") };
  if (type === "allowed_tools") return allowed(given, tools);
  if (typeof type !== "string") throw missing("tool_choice.type");
  throw new UnsupportedError(`tool_choice: this server has no tools of the type '${type.slice(0, 40)}'`, {
    param: "tool_choice.type",
  });
}

/** What is not run by the client can't be called here: the choice is among the others. */
function allowed(given: Loose, tools: ResponseTools): ToolChoice {
  const nested = isObject(given["allowed_tools"]) ? given["allowed_tools"] : given;
  const { mode, tools: list } = nested;
  if (mode !== "auto" && mode !== "required")
    throw wrong("tool_choice.mode", "tool_choice.mode must be auto or required");
  if (!Array.isArray(list) || list.length === 0)
    throw wrong("tool_choice.tools", "tool_choice.tools must be a list of tools");
  const known = new NamedTools(tools);
  const names = new Set<string>();
  for (const [i, each] of (list as readonly unknown[]).entries()) {
    if (!isObject(each)) throw wrong(`tool_choice.tools[${i}]`, `tool_choice.tools[${i}] must be an object`);
    if (each["type"] === "namespace") for (const name of known.takeNamespace(each["name"])) names.add(name);
    else if (each["type"] === "function" || each["type"] === "custom")
      names.add(oneNamed(each, known, `tool_choice.tools[${i}]`));
  }
  if (names.size === 0 && mode === "required")
    throw wrong("tool_choice.tools", "tool_choice.tools names no tool that is run by the client");
  return names.size === 0 ? { mode: "none" } : { mode, allowed: [...names] };
}

interface NamedTool extends ToolOrigin {
  readonly modelName: string;
}

/** Tools by the names that clients have for them: a choice may name very many. */
class NamedTools {
  private readonly byName = new Map<string, NamedTool[]>();
  private readonly byNamespace = new Map<unknown, string[]>();

  constructor({ definitions, origin }: ResponseTools) {
    for (const { name: modelName } of definitions) {
      const tool = { modelName, ...origin(modelName) };
      const { name, namespace } = tool;
      const same = this.byName.get(name);
      if (same === undefined) this.byName.set(name, [tool]);
      else same.push(tool);
      const others = this.byNamespace.get(namespace);
      if (others === undefined) this.byNamespace.set(namespace, [modelName]);
      else others.push(modelName);
    }
  }

  named(name: string): readonly NamedTool[] {
    return this.byName.get(name) ?? [];
  }

  /** The model's names of a namespace's tools; none the second time. */
  takeNamespace(namespace: unknown): readonly string[] {
    const names = this.byNamespace.get(namespace) ?? [];
    this.byNamespace.delete(namespace);
    return names;
  }
}

/** The model's name of a tool that is named, in a namespace or not; the namespace may be left out where no other tool has the name. */
function oneNamed(given: Loose, tools: NamedTools, at: string): string {
  const inner = given[String(given["type"])];
  const { name, namespace } = isObject(inner) ? inner : given;
  if (typeof name !== "string" || name === "") throw missing(`${at}.name`);
  const all = tools.named(name);
  const wanted = typeof namespace === "string" ? namespace : undefined;
  const exact = all.find((tool) => tool.namespace === wanted);
  const [only, ...others] = all;
  const found = exact ?? (wanted === undefined && others.length === 0 ? only : undefined);
  if (found === undefined)
    throw wrong(`${at}.name`, `${at}.name: there is no tool '${name.slice(0, LONGEST_NAME)}' among the request's`);
  return found.modelName;
}

/** Tools as the response shows them: as sent, a function with all of its keys. */
export const shownTools = (tools: readonly Loose[]): Loose[] =>
  tools.map((tool) =>
    tool["type"] === "function" ? { description: null, parameters: null, strict: null, ...tool } : tool,
  );
