/** Structural tags for tools beside a constraint of the answer: the model calls, or its answer satisfies the constraint. */
import type { Constraint } from "../../engines/engine.ts";
import { reasoningFamily } from "../../parsers/names.ts";
import type { ToolDefinition } from "../conversation.ts";
import { strictSchema } from "./declaration.ts";
import {
  ANY_TEXT,
  callParts,
  constant,
  type Format,
  optional,
  pattern,
  sequence,
  type TagOptions,
  thoughtFormats,
} from "./structural-tag.ts";

/** What calls begin with in families whose calls no tag can express: from there on the model is free. */
const BEGINS: Readonly<Record<string, readonly string[] | ((tool: ToolDefinition) => string)>> = {
  pythonic: ({ name }) => `[${name}(`,
  xlam: ({ name }) => `[{"name": ${JSON.stringify(name)}`,
  minicpm5: ({ name }) => `<function name=${JSON.stringify(name)}`,
  lfm2: ["<|tool_call_start|>"],
  olmo3: ["<function_calls>"],
  sarashina: ["<|tool_calls|>"],
  step3: ["<｜tool_calls_begin｜>"],
  minimax_m1: ["<tool_calls>"],
  minimax_m3: ["]<]minimax[>[<tool_call>"],
  gemma4: ["<|tool_call>"],
  functiongemma: ["<start_function_call>"],
  longcat: ["<longcat_tool_call>"],
  hy_v3: ["<tool_calls>", "<tool_calls:opensource>"],
  hy_v4: ["<tool_calls>", "<tool_calls:opensource>"],
  gigachat3: ["function call<|role_sep|>", "<|function_call|>"],
  gigachat35: ["<｜GCML｜tool_calls>"],
  apertus: ["<|tools_prefix|>"],
  solar_open2: ["<|tool_call:start|>"],
  plamo3: ["<|plamo:begin_tool_requests:plamo|>"],
};

interface Around {
  readonly open: readonly string[];
  readonly close: readonly string[];
  /** Without it a text belongs to no channel. */
  readonly isNeeded?: boolean;
}

/** What may stand around an answer, by tool parser; the parsers leave it out. */
const AROUND: Readonly<Record<string, Around>> = {
  harmony: {
    open: ["", " json", " <|constrain|>json"].map((kind) => `<|channel|>final${kind}<|message|>`),
    close: [],
    isNeeded: true,
  },
  inkling: { open: ["<|content_text|>"], close: ["<|end_message|>"], isNeeded: true },
  kimi_k3: { open: ["<|open|>response<|sep|>"], close: ["<|close|>response<|sep|>"] },
  cohere: { open: ["<|START_RESPONSE|>", "<|START_TEXT|>"], close: ["<|END_RESPONSE|>", "<|END_TEXT|>"] },
};

/** Stands for the schema of the answer until its own text is put there: numbers stay as they were sent. */
const SCHEMA = "the schema of the answer";

export interface CallOrAnswerOptions extends TagOptions {
  readonly reasoningParser?: string | undefined;
  /** As in `PlanOptions`. */
  readonly engineWaitsForReasoning?: boolean | undefined;
}

/**
 * JSON text of the structural tag that lets a model of this family either answer as `wanted` says, or make one or more calls, of strict
 * tools with arguments that satisfy their schemas, of others with any. `parser`: the tool parser's own name. Undefined for constraints
 * that have no form in a tag, and where it is not known what begins a call.
 */
export function callOrAnswerTag(
  parser: string,
  tools: readonly ToolDefinition[],
  wanted: Constraint,
  options: CallOrAnswerOptions,
): string | undefined {
  const found = answerFormat(wanted);
  const calls = callParts(parser, tools, options, strictSchema) ?? freeCalls(parser, tools);
  if (found === undefined || calls === undefined) return undefined;
  const around = ofFamily(AROUND, parser) ?? tagsOf(reasoningFamily(options.reasoningParser)?.drop ?? []);
  const { open, close, isNeeded = false } = around;
  // an engine that waits may begin behind the header
  const header = isNeeded && options.engineWaitsForReasoning !== true ? [or(open.map(constant))] : perhaps(open);
  const answer = sequence(...header, found.format, ...perhaps(close));
  const either = sequence(...thoughtFormats(options.thought), or([answer, sequence(...calls)]));
  const tag = JSON.stringify({ type: "structural_tag", format: either });
  const { schema } = found;
  // the first place is that of the answer, as all before it is the family's own
  return schema === undefined ? tag : tag.replace(JSON.stringify(SCHEMA), () => schema);
}

function answerFormat(wanted: Constraint): { readonly format: Format; readonly schema?: string } | undefined {
  const json = { type: "json_schema", json_schema: SCHEMA };
  switch (wanted.kind) {
    case "json_object":
      return { format: json, schema: '{"type":"object"}' };
    case "json_schema":
      return { format: json, schema: wanted.schema };
    case "regex":
      return { format: pattern(wanted.pattern) };
    case "choice":
      return { format: or(wanted.choices.map(constant)) };
    default:
      return undefined;
  }
}

const ofFamily = <T>(table: Readonly<Record<string, T>>, parser: string): T | undefined =>
  Object.hasOwn(table, parser) ? table[parser] : undefined;

function freeCalls(parser: string, tools: readonly ToolDefinition[]): readonly Format[] | undefined {
  const begins = ofFamily(BEGINS, parser);
  if (begins === undefined) return undefined;
  return [or((typeof begins === "function" ? tools.map(begins) : begins).map(constant)), ANY_TEXT];
}

/** Tags of XML among the markers around visible text, as Hunyuan's `<answer>`. */
const tagsOf = (markers: readonly string[]): Around => ({
  open: markers.filter((marker) => /^<\w+>\n?$/.test(marker)),
  close: markers.filter((marker) => /^\n?<\/\w+>$/.test(marker)),
});

const or = (elements: readonly Format[]): Format => (elements.length === 1 ? elements[0]! : { type: "or", elements });

const perhaps = (texts: readonly string[]): readonly Format[] =>
  texts.length === 0 ? [] : [optional(or(texts.map(constant)))];
