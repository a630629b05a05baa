/**
 * Calls in a family's own format as structural tags of xgrammar (`{"type": "structural_tag", "format": …}`, xgrammar 0.2.9: formats
 * `tag`, `sequence`, `optional`, `tags_with_separator`, `json_schema`, `const_string`, `regex`, `any_text`). What the tags let through,
 * the family's parser reads.
 */
import type { ToolDefinition } from "../conversation.ts";
import { argumentSchema } from "./declaration.ts";

/** A format object of xgrammar. */
export type Format = Readonly<Record<string, unknown>>;

/** How one family writes its calls. */
interface CallFormat {
  /** Around all calls. */
  readonly open: string;
  readonly close: string;
  readonly separator: string;
  /** One call. */
  readonly call: (tool: ToolDefinition) => Format;
  /** The format has place for one call only. */
  readonly isSingle?: boolean;
}

const tag = (begin: string, content: Format, end: string | readonly string[]): Format => ({
  type: "tag",
  begin,
  content,
  end,
});
const sequence = (...elements: readonly Format[]): Format => ({ type: "sequence", elements });
const constant = (value: string): Format => ({ type: "const_string", value });
const pattern = (regex: string): Format => ({ type: "regex", pattern: regex });
const ANY_TEXT: Format = { type: "any_text" };
const NUMBER = pattern("\\d{1,4}");

/** Notations of arguments that xgrammar knows beside JSON. */
type Style = "qwen_xml" | "minimax_xml" | "deepseek_xml" | "glm_xml" | "kimi_k3_xml";

const schema = (tool: ToolDefinition, style?: Style): Format => ({
  type: "json_schema",
  json_schema: argumentSchema(tool),
  ...(style !== undefined && { style }),
});

const quoted = (name: string): string => JSON.stringify(name);
/** A call as an object of JSON: `{"name": "N", "KEY": …}`. */
const object = (tool: ToolDefinition, key: string): Format =>
  tag(`{"name": ${quoted(tool.name)}, "${key}": `, schema(tool), "}");

/** Objects between two markers, e.g. a list in brackets. */
const objects = (open: string, close: string, separator = ", ", key = "arguments"): CallFormat => ({
  open,
  close,
  separator,
  call: (tool) => object(tool, key),
});
/** Calls one after the other, each between markers of its own. */
const each = (separator: string, call: CallFormat["call"]): CallFormat => ({ open: "", close: "", separator, call });

const glm = (separator: string): CallFormat =>
  each(separator, (tool) => tag(`<tool_call>${tool.name}`, schema(tool, "glm_xml"), "</tool_call>"));

const dsml = (block: string): CallFormat => ({
  open: `\n\n<｜DSML｜${block}>\n`,
  close: `</｜DSML｜${block}>`,
  separator: "",
  call: (tool) => tag(`<｜DSML｜invoke name="${tool.name}">\n`, schema(tool, "deepseek_xml"), "</｜DSML｜invoke>\n"),
});

/** By the name of the tool parser. Those that are missing have no form that a tag can express, or none of their own. */
const FORMATS: Readonly<Record<string, (sample: string) => CallFormat>> = {
  // newer templates write a call without JSON around it
  mistral: (sample) =>
    sample.includes("[ARGS]")
      ? each("", (tool) => tag(`[TOOL_CALLS]${tool.name}[ARGS]`, schema(tool), ""))
      : objects("[TOOL_CALLS] [", "]"),
  qwen: () =>
    each("\n", (tool) =>
      tag(`<tool_call>\n{"name": ${quoted(tool.name)}, "arguments": `, schema(tool), "}\n</tool_call>"),
    ),
  qwen_xml: () =>
    each("\n", (tool) =>
      tag(`<tool_call>\n<function=${tool.name}>\n`, schema(tool, "qwen_xml"), "\n</function>\n</tool_call>"),
    ),
  llama: () => objects("", "", "; ", "parameters"),
  deepseek: () => ({
    open: "<｜tool▁calls▁begin｜>",
    close: "<｜tool▁calls▁end｜>",
    separator: "\n",
    call: (tool) =>
      tag(
        `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${tool.name}\n\`\`\`json\n`,
        schema(tool),
        "\n```<｜tool▁call▁end｜>",
      ),
  }),
  deepseek31: () => ({
    open: "<｜tool▁calls▁begin｜>",
    close: "<｜tool▁calls▁end｜>",
    separator: "",
    call: (tool) => tag(`<｜tool▁call▁begin｜>${tool.name}<｜tool▁sep｜>`, schema(tool), "<｜tool▁call▁end｜>"),
  }),
  deepseek32: () => dsml("function_calls"),
  deepseek_v4: () => dsml("tool_calls"),
  glm45_moe: () => glm("\n"),
  glm47_moe: () => glm(""),
  minimax_m2: () => ({
    open: "<minimax:tool_call>\n",
    close: "</minimax:tool_call>",
    separator: "",
    call: (tool) => tag(`<invoke name="${tool.name}">\n`, schema(tool, "minimax_xml"), "</invoke>\n"),
  }),
  seed_oss: () =>
    each("\n", (tool) =>
      tag(`<seed:tool_call>\n<function=${tool.name}>\n`, schema(tool, "qwen_xml"), "\n</function>\n</seed:tool_call>"),
    ),
  kimik2: () => ({
    open: "<|tool_calls_section_begin|>",
    close: "<|tool_calls_section_end|>",
    separator: "",
    call: (tool) =>
      tag(
        `<|tool_call_begin|>functions.${tool.name}:`,
        sequence(NUMBER, constant("<|tool_call_argument_begin|>"), schema(tool)),
        "<|tool_call_end|>",
      ),
  }),
  kimi_k3: () => ({
    open: "<|open|>tools<|sep|>",
    close: "<|close|>tools<|sep|>",
    separator: "",
    call: (tool) =>
      tag(
        `<|open|>call tool="${tool.name}" index="`,
        sequence(NUMBER, constant('"<|sep|>'), schema(tool, "kimi_k3_xml")),
        "<|close|>call<|sep|>",
      ),
  }),
  inkling: () =>
    each("<|message_model|>", (tool) =>
      tag(`<|content_invoke_tool_json|>{"name": ${quoted(tool.name)}, "args": `, schema(tool), "}<|end_message|>"),
    ),
  // a call ends the answer: its marker is an end token of the model, which may come once the grammar is satisfied
  harmony: () => ({
    ...each("", (tool) =>
      tag(`<|channel|>commentary to=functions.${tool.name} <|constrain|>json<|message|>`, schema(tool), ""),
    ),
    isSingle: true,
  }),
  cohere: () => ({
    open: "<|START_ACTION|>[\n",
    close: "\n]<|END_ACTION|>",
    separator: ",\n",
    call: (tool) =>
      tag(
        '{"tool_call_id": "',
        sequence(NUMBER, constant(`", "tool_name": ${quoted(tool.name)}, "parameters": `), schema(tool)),
        "}",
      ),
  }),
  granite: (sample) => objects(sample.includes("<tool_call>") ? "<tool_call>[" : "<|tool_call|>[", "]"),
  phi4_mini: () => objects("functools[", "]"),
  internlm: () => ({
    ...objects("<|action_start|><|plugin|>\n", "<|action_end|>", "", "parameters"),
    isSingle: true,
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
  const make = Object.hasOwn(FORMATS, parser) ? FORMATS[parser] : undefined;
  if (make === undefined) return undefined;
  const format = make(options.sample);
  const tags: Format = {
    type: "tags_with_separator",
    tags: tools.map(format.call),
    separator: format.separator,
    at_least_one: true,
    stop_after_first: options.single || format.isSingle === true,
  };
  const { open, close } = format;
  const parts = [...(open === "" ? [] : [constant(open)]), tags, ...(close === "" ? [] : [constant(close)])];
  return sequence(...thoughtFormats(options.thought), ...parts);
}

/** Between a thought and what follows, templates and models differ in their white space. */
const SPACE = pattern("[ \\n]{0,4}");

function thoughtFormats(thought: Thought | undefined): Format[] {
  if (thought === undefined) return [];
  const { open, close, isOpen } = thought;
  if (isOpen) return [tag("", ANY_TEXT, close), SPACE];
  return [{ type: "optional", content: sequence(tag(open, ANY_TEXT, close), SPACE) }];
}
