/**
 * Calls in a family's own format as structural tags of xgrammar (`{"type": "structural_tag", "format": …}`, xgrammar 0.2.9: formats
 * `tag`, `sequence`, `optional`, `tags_with_separator`, `triggered_tags`, `json_schema`, `const_string`, `regex`, `any_text`). What the
 * tags let through, the family's parser reads.
 */
import type { ToolDefinition } from "../conversation.ts";
import { argumentSchema, strictSchema } from "./declaration.ts";

/** A format object of xgrammar. */
export type Format = Readonly<Record<string, unknown>>;

/** How one family writes its calls. */
interface CallFormat {
  /** Around all calls. */
  readonly open: string;
  readonly close: string;
  readonly separator: string;
  /** What models write in front of it all when they say nothing else. */
  readonly lead?: readonly Format[];
  /** One call; `parameters`: the schema of its arguments. */
  readonly call: (tool: ToolDefinition, parameters: unknown) => Format;
  /** What nothing but a call begins with; absent: the first marker. */
  readonly trigger?: string;
  /** No marker begins a call. */
  readonly isBare?: boolean;
  /** The format has place for one call only. */
  readonly isSingle?: boolean;
}

export const tag = (begin: string, content: Format, end: string | readonly string[]): Format => ({
  type: "tag",
  begin,
  content,
  end,
});
export const sequence = (...elements: readonly Format[]): Format => ({ type: "sequence", elements });
export const constant = (value: string): Format => ({ type: "const_string", value });
export const pattern = (regex: string): Format => ({ type: "regex", pattern: regex });
export const optional = (content: Format): Format => ({ type: "optional", content });
export const ANY_TEXT: Format = { type: "any_text" };
const NUMBER = pattern("\\d{1,4}");

/** Notations of arguments that xgrammar knows beside JSON. */
type Style = "qwen_xml" | "minimax_xml" | "deepseek_xml" | "glm_xml" | "kimi_k3_xml";

const schema = (parameters: unknown, style?: Style): Format => ({
  type: "json_schema",
  json_schema: parameters,
  ...(style !== undefined && { style }),
});

const quoted = (name: string): string => JSON.stringify(name);
/** A call as an object of JSON: `{"name": "N", "KEY": …}`. */
const object = (tool: ToolDefinition, parameters: unknown, key: string): Format =>
  tag(`{"name": ${quoted(tool.name)}, "${key}": `, schema(parameters), "}");

/** Objects between two markers, e.g. a list in brackets. */
const objects = (open: string, close: string, separator = ", ", key = "arguments"): CallFormat => ({
  open,
  close,
  separator,
  call: (tool, parameters) => object(tool, parameters, key),
});
/** Calls one after the other, each between markers of its own. */
const each = (separator: string, call: CallFormat["call"]): CallFormat => ({ open: "", close: "", separator, call });

const glm = (separator: string): CallFormat =>
  each(separator, (tool, parameters) => tag(`<tool_call>${tool.name}`, schema(parameters, "glm_xml"), "</tool_call>"));

const dsml = (block: string): CallFormat => ({
  open: `\n\n<｜DSML｜${block}>\n`,
  close: `</｜DSML｜${block}>`,
  separator: "",
  call: (tool, parameters) =>
    tag(`<｜DSML｜invoke name="${tool.name}">\n`, schema(parameters, "deepseek_xml"), "</｜DSML｜invoke>\n"),
});

/** By the name of the tool parser. Those that are missing have no form that a tag can express, or none of their own. */
const FORMATS: Readonly<Record<string, (sample: string) => CallFormat>> = {
  // newer templates write a call without JSON around it
  mistral: (sample) =>
    sample.includes("[ARGS]")
      ? each("", (tool, parameters) => tag(`[TOOL_CALLS]${tool.name}[ARGS]`, schema(parameters), ""))
      : objects("[TOOL_CALLS] [", "]"),
  qwen: () =>
    each("\n", (tool, parameters) =>
      tag(`<tool_call>\n{"name": ${quoted(tool.name)}, "arguments": `, schema(parameters), "}\n</tool_call>"),
    ),
  qwen_xml: () =>
    each("\n", (tool, parameters) =>
      tag(`<tool_call>\n<function=${tool.name}>\n`, schema(parameters, "qwen_xml"), "\n</function>\n</tool_call>"),
    ),
  llama: () => ({ ...objects("", "", "; ", "parameters"), isBare: true }),
  deepseek: () => ({
    open: "<｜tool▁calls▁begin｜>",
    close: "<｜tool▁calls▁end｜>",
    separator: "\n",
    call: (tool, parameters) =>
      tag(
        `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${tool.name}\n\`\`\`json\n`,
        schema(parameters),
        "\n```<｜tool▁call▁end｜>",
      ),
  }),
  deepseek31: () => ({
    open: "<｜tool▁calls▁begin｜>",
    close: "<｜tool▁calls▁end｜>",
    separator: "",
    call: (tool, parameters) =>
      tag(`<｜tool▁call▁begin｜>${tool.name}<｜tool▁sep｜>`, schema(parameters), "<｜tool▁call▁end｜>"),
  }),
  deepseek32: () => dsml("function_calls"),
  deepseek_v4: () => dsml("tool_calls"),
  glm45_moe: () => glm("\n"),
  glm47_moe: () => glm(""),
  minimax_m2: () => ({
    open: "<minimax:tool_call>\n",
    close: "</minimax:tool_call>",
    separator: "",
    call: (tool, parameters) => tag(`<invoke name="${tool.name}">\n`, schema(parameters, "minimax_xml"), "</invoke>\n"),
  }),
  seed_oss: () =>
    each("\n", (tool, parameters) =>
      tag(
        `<seed:tool_call>\n<function=${tool.name}>\n`,
        schema(parameters, "qwen_xml"),
        "\n</function>\n</seed:tool_call>",
      ),
    ),
  kimik2: () => ({
    open: "<|tool_calls_section_begin|>",
    close: "<|tool_calls_section_end|>",
    separator: "",
    call: (tool, parameters) =>
      tag(
        `<|tool_call_begin|>functions.${tool.name}:`,
        sequence(NUMBER, constant("<|tool_call_argument_begin|>"), schema(parameters)),
        "<|tool_call_end|>",
      ),
  }),
  kimi_k3: () => ({
    // an empty response, which a prompt without thinking has opened
    lead: ["open", "close"].map((word) => optional(constant(`<|${word}|>response<|sep|>`))),
    open: "<|open|>tools<|sep|>",
    close: "<|close|>tools<|sep|>",
    separator: "",
    call: (tool, parameters) =>
      tag(
        `<|open|>call tool="${tool.name}" index="`,
        sequence(NUMBER, constant('"<|sep|>'), schema(parameters, "kimi_k3_xml")),
        "<|close|>call<|sep|>",
      ),
  }),
  inkling: () =>
    each("<|message_model|>", (tool, parameters) =>
      tag(
        `<|content_invoke_tool_json|>{"name": ${quoted(tool.name)}, "args": `,
        schema(parameters),
        "}<|end_message|>",
      ),
    ),
  // a call ends the answer: its marker is an end token of the model, which may come once the grammar is satisfied
  harmony: () => ({
    ...each("", (tool, parameters) =>
      tag(`<|channel|>commentary to=functions.${tool.name} <|constrain|>json<|message|>`, schema(parameters), ""),
    ),
    isSingle: true,
    trigger: "<|channel|>commentary to=functions.",
  }),
  cohere: () => ({
    open: "<|START_ACTION|>[\n",
    close: "\n]<|END_ACTION|>",
    separator: ",\n",
    call: (tool, parameters) =>
      tag(
        '{"tool_call_id": "',
        sequence(NUMBER, constant(`", "tool_name": ${quoted(tool.name)}, "parameters": `), schema(parameters)),
        "}",
      ),
  }),
  granite: (sample) => objects(sample.includes("<tool_call>") ? "<tool_call>[" : "<|tool_call|>[", "]"),
  phi4_mini: () => objects("functools[", "]"),
  internlm: () => ({
    ...objects("<|action_start|><|plugin|>\n", "<|action_end|>", "", "parameters"),
    isSingle: true,
    trigger: "<|action_start|><|plugin|>",
  }),
  jamba: () => objects("<tool_calls>[", "]</tool_calls>"),
  hunyuan: () => objects("<tool_calls>[", "]</tool_calls>"),
  nemotron: () => objects("<TOOLCALL>[", "]</TOOLCALL>"),
};

/** Tool parsers whose calls can be forced in their own format. */
export const structuralTagParsers = (): readonly string[] => Object.keys(FORMATS);

/** Reasoning that may or must come before the calls. */
export interface Thought {
  readonly open: string;
  readonly close: string;
  /** The prompt has opened it. */
  readonly isOpen: boolean;
  /** False: though open it may be over already, or never end. */
  readonly isSure?: boolean;
}

export interface TagOptions {
  /** At most one call. */
  readonly single: boolean;
  /** Undefined: no reasoning passes, e.g. as the engine lets it pass by itself. */
  readonly thought: Thought | undefined;
  /** How the model's template writes a call, as families differ between versions. */
  readonly sample: string;
}

/** Channels of harmony: a thought ends with its message, and the call is another one. */
export const HARMONY_THOUGHT = { open: "<|channel|>analysis<|message|>", close: "<|end|><|start|>assistant" } as const;
export const INKLING_THOUGHT = { open: "<|content_thinking|>", close: "<|end_message|><|message_model|>" } as const;

/** The format that makes a model of this family call one or more of these tools; undefined where the family has none. */
export function callFormat(parser: string, tools: readonly ToolDefinition[], options: TagOptions): Format | undefined {
  const parts = callParts(parser, tools, options, argumentSchema);
  return parts && sequence(...thoughtFormats(options.thought), ...parts);
}

/** One or more calls, and nothing before or behind them; `parameters`: what holds their arguments. Undefined where the family has none. */
export function callParts(
  parser: string,
  tools: readonly ToolDefinition[],
  options: Omit<TagOptions, "thought">,
  parameters: (tool: ToolDefinition) => unknown,
): readonly Format[] | undefined {
  const format = familyFormat(parser, options);
  if (format === undefined) return undefined;
  const { lead = [], open, close, call } = format;
  const calls = tools.map((tool) => call(tool, parameters(tool)));
  const parts = [constant(open), separated(format, calls, options), constant(close)];
  return [...lead, ...parts.filter(({ value }) => value !== "")];
}

/**
 * The format that lets a model of this family write whatever it likes, but its calls of `strict` tools with arguments that satisfy
 * their schemas; of the others with any. Undefined where the family has none.
 */
export function strictFormat(
  parser: string,
  tools: readonly ToolDefinition[],
  options: TagOptions,
): Format | undefined {
  const format = familyFormat(parser, options);
  if (format === undefined) return undefined;
  // without a marker an answer in JSON must stay free: a call counts from the name of a strict tool on
  const bound = format.isBare === true ? tools.filter(({ strict }) => strict) : tools;
  const calls = bound.map((tool) => format.call(tool, strictSchema(tool)));
  const open = format.open.trimStart();
  const begins = open === "" ? calls.map((call) => String(call["begin"])) : [open];
  const triggers = begins.map((begin) => (format.isBare === true ? begin : (format.trigger ?? firstMarker(begin))));
  const tags: Format = {
    type: "triggered_tags",
    triggers: [...new Set(triggers)],
    tags: open === "" ? calls : [tag(open, separated(format, calls, options), format.close)],
    at_least_one: false,
    stop_after_first: isSingle(format, options),
  };
  const thought = thoughtFormats(options.thought && { ...options.thought, isSure: false });
  return thought.length === 0 ? tags : sequence(...thought, tags);
}

/** Text that matches a regular expression, and nothing else but the reasoning right before it. */
export const textFormat = (regex: string, thought: Thought | undefined): Format =>
  sequence(...thoughtFormats(thought, []), pattern(regex));

const familyFormat = (parser: string, { sample }: Pick<TagOptions, "sample">): CallFormat | undefined =>
  Object.hasOwn(FORMATS, parser) ? FORMATS[parser]!(sample) : undefined;

const isSingle = (format: CallFormat, { single }: Pick<TagOptions, "single">): boolean =>
  single || format.isSingle === true;

const separated = (format: CallFormat, calls: readonly Format[], options: Pick<TagOptions, "single">): Format => ({
  type: "tags_with_separator",
  tags: calls,
  separator: format.separator,
  at_least_one: true,
  stop_after_first: isSingle(format, options),
});

/** `<marker>`, `[MARKER]`, `functools[`. */
const firstMarker = (begin: string): string => /^(?:<[^>]*>|\[[A-Z_]+\]|\w+\[)/.exec(begin)?.[0] ?? begin;

/** Between a thought and what follows, templates and models differ in their white space. */
const SPACE = [pattern("[ \\n]{0,4}")] as const;

/** The reasoning that a constraint lets pass, with the white space behind it. */
export function thoughtFormats(thought: Thought | undefined, space: readonly Format[] = SPACE): Format[] {
  if (thought === undefined) return [];
  const { open, close, isOpen, isSure = true } = thought;
  const whole = [tag(isOpen ? "" : open, ANY_TEXT, close), ...space];
  return isOpen && isSure ? whole : [optional(sequence(...whole))];
}
