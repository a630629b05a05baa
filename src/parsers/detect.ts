import { HARMONY_ANALYSIS } from "./families/harmony.ts";
import { reasoningFamily, unifiedReasoning } from "./names.ts";

/** What is known of a model. */
export interface ModelSource {
  readonly chatTemplate?: string;
  readonly architectures?: readonly string[];
  readonly modelType?: string;
  readonly modelId?: string;
}

/** Names of parsers; without one, that stage is left out. */
export interface DetectedParsers {
  readonly reasoning?: string;
  readonly tool?: string;
}

/** All of these stand in the template, none of those. */
type TemplateRule = readonly [parser: string, ...markers: string[]];

/** The templates write the markers of their own format; the more special ones first. `!`: must not be there. */
const TOOLS_BY_TEMPLATE: readonly TemplateRule[] = [
  ["harmony", "<|channel|>", "<|message|>"],
  ["inkling", "<|content_invoke_tool_json|>"],
  ["kimi_k3", "<|open|>", "<|sep|>"],
  ["kimik2", "<|tool_calls_section_begin|>"],
  ["deepseek_v4", "｜DSML｜", "tool_calls>"],
  ["deepseek32", "｜DSML｜"],
  ["deepseek", "<｜tool▁calls▁begin｜>", "```json"],
  ["deepseek31", "<｜tool▁calls▁begin｜>"],
  ["minimax_m3", "]<]minimax[>["],
  ["minimax_m2", "<minimax:tool_call>"],
  ["gigachat35", "｜GCML｜"],
  ["gigachat3", "<|function_call|>"],
  ["gigachat3", "function call", "<|role_sep|>"],
  ["apertus", "<|tools_prefix|>"],
  ["plamo3", "<|plamo:begin_tool_requests:plamo|>"],
  ["hy_v3", "<tool_sep"],
  ["hy_v4", "<tool_calls", "<arg_key"],
  ["seed_oss", "<seed:tool_call>"],
  ["longcat", "<longcat_tool_call>"],
  ["step3", "<steptml:invoke"],
  ["solar_open2", "<|tool_call:start|>"],
  ["minicpm5", '<function name="', '<param name="'],
  ["glm45_moe", "<arg_key>", "</arg_key>\\n"],
  ["glm45_moe", "<arg_key>", "</arg_key>\n"],
  ["glm47_moe", "<arg_key>"],
  ["qwen_xml", "<function=", "<parameter="],
  ["gemma4", "<|tool_call>"],
  ["functiongemma", "<start_function_call>"],
  ["cohere", "<|START_ACTION|>"],
  ["internlm", "<|action_start|>"],
  ["nemotron", "<TOOLCALL>"],
  ["lfm2", "<|tool_call_start|>"],
  ["olmo3", "<function_calls>"],
  ["sarashina", "<|tool_calls|>"],
  ["pythonic", "<|python_start|>"],
  ["hunyuan", "<tool_calls>", "<answer>"],
  ["jamba", "<tool_calls>"],
  ["mistral", "[TOOL_CALLS]"],
  ["granite", "<|tool_call|>"],
  ["phi4_mini", "functools"],
  ["qwen", "<tool_call>"],
  ["llama", "<|python_tag|>"],
  // Llama 3.2 names no marker, but the form.
  ["llama", '{"name": function name, "parameters"'],
];

const REASONING_BY_TEMPLATE: readonly TemplateRule[] = [
  ["harmony", "<|channel|>", "<|message|>"],
  ["inkling", "<|content_thinking|>"],
  ["kimi_k3", "<|open|>", "<|sep|>"],
  ["seed_oss", "<seed:think>"],
  ["mistral", "[THINK]"],
  ["cohere_cmd", "<|START_THINKING|>"],
  ["kimi", "◁think▷"],
  ["gemma4", "<|channel>"],
  ["granite", "Here is my thought process:"],
  ["minimax_m3", "<mm:think>"],
  ["minimax", "</think>", "<minimax:tool_call>"],
  ["gigachat35", "</think>", "｜GCML｜"],
  ["apertus", "<|inner_prefix|>"],
  ["plamo3", "<|plamo:begin_think:plamo|>"],
  ["hy_v3", "<think", "<tool_sep"],
  ["hy_v3", "<think", "<tool_calls", "<arg_key"],
  ["solar_open2", "<|think:start|>"],
  ["hunyuan_a13b", "</think>", "<answer>"],
  ["ernie45", "</think>", "<response>", "<tool_call>"],
  ["step3", "think>", "<steptml:"],
  ["olmo3", "think>", "<function_calls>"],
  ["nano_v3", "think>", "<TOOLCALL>"],
  ["exaone4", "think>", "[|assistant|]"],
  // Its template may name the roles only.
  ["exaone4", "think>", "[|endofturn|]"],
  ["kimi_k25", "</think>", "<|tool_calls_section_begin|>"],
  ["deepseek_r1", "</think>", "<｜tool▁calls▁begin｜>", "```json"],
  ["deepseek_v31", "</think>", "<｜Assistant｜>"],
  ["glm45", "</think>", "<arg_key>"],
  ["qwen3", "</think>", "<tool_call>"],
  ["qwen3", "</think>", "<|im_start|>"],
  ["base", "</think>"],
  ["base", "<think>"],
];

/** A pattern of a name, and its parsers. */
type NameRule = readonly [pattern: RegExp, tool: string | undefined, reasoning: string | undefined];

/** `architectures` and `model_type`, only those that leave no choice. */
const BY_ARCHITECTURE: readonly NameRule[] = [
  [/^gpt_?oss/i, "harmony", "harmony"],
  [/^deepseek_?v4/i, "deepseek_v4", "deepseek_v31"],
  [/^deepseek_?v32/i, "deepseek32", "deepseek_v31"],
  [/^kimi_?k3/i, "kimi_k3", "kimi_k3"],
  [/^kimi_?k25/i, "kimik2", "kimi_k25"],
  [/^inkling/i, "inkling", "inkling"],
  [/^minimax_?m2/i, "minimax_m2", "minimax"],
  [/^minimax_?m3/i, "minimax_m3", "minimax_m3"],
  [/^hy_?v3/i, "hy_v3", "hy_v3"],
  [/^hy_?v4/i, "hy_v4", "hy_v3"],
  [/^apertus/i, "apertus", "apertus"],
  [/^plamo_?3/i, "plamo3", "plamo3"],
  [/^solar_?open_?2/i, "solar_open2", "solar_open2"],
  [/^laguna/i, "glm47_moe", "glm45"],
  [/^glm_?moe_?dsa/i, "glm47_moe", "glm45"],
  [/^glm4_?moe/i, "glm45_moe", "glm45"],
  [/^step3/i, "step3", "step3"],
  [/^qwen3_?(?:next|5)/i, "qwen_xml", "qwen3"],
  [/^qwen3/i, "qwen", "qwen3"],
  [/^qwen2/i, "qwen", undefined],
  [/^llama4/i, "pythonic", undefined],
  [/^(?:mistral|mixtral|ministral|pixtral)/i, "mistral", undefined],
  [/^cohere2?/i, "cohere", "cohere_cmd"],
  [/^seed_?oss/i, "seed_oss", "seed_oss"],
  [/^gemma4/i, "gemma4", "gemma4"],
  [/^granite_?moe_?hybrid/i, "qwen", undefined],
  [/^granite/i, "granite", "granite"],
  [/^internlm2/i, "internlm", undefined],
  [/^jamba/i, "jamba", undefined],
  [/^hunyuan/i, "hunyuan", "hunyuan_a13b"],
  [/^lfm2/i, "lfm2", undefined],
  [/^olmo3/i, "olmo3", "olmo3"],
  [/^ernie4_?5/i, "qwen", "ernie45"],
  [/^longcat/i, "longcat", undefined],
  [/^exaone4/i, "qwen", "exaone4"],
  [/^nemotron_?h/i, "qwen_xml", "nano_v3"],
];

/** Names, as the last resort. */
const BY_NAME: readonly NameRule[] = [
  [/gpt-?oss/, "harmony", "harmony"],
  [/inkling/, "inkling", "inkling"],
  [/deepseek-?r1-?distill/, undefined, "deepseek_r1"],
  [/deepseek-?r1/, "deepseek", "deepseek_r1"],
  [/deepseek-?v4/, "deepseek_v4", "deepseek_v31"],
  [/deepseek-?v3[.-]?2-?exp/, "deepseek31", "deepseek_v31"],
  [/deepseek-?v3[.-]?2/, "deepseek32", "deepseek_v31"],
  [/deepseek-?v3[.-]?1/, "deepseek31", "deepseek_v31"],
  [/deepseek-?v3/, "deepseek", undefined],
  [/kimi-?k3/, "kimi_k3", "kimi_k3"],
  [/kimi-?k2-?thinking/, "kimik2", "kimi_thinking"],
  [/kimi-?k2[.-]?[5-9]/, "kimik2", "kimi_k25"],
  [/kimi-?k2/, "kimik2", "kimi_k2"],
  [/kimi/, undefined, "kimi"],
  [/qwen-?3[.-]?5|qwen-?3[.-]?6/, "qwen_xml", "qwen3"],
  [/qwen-?3-?coder/, "qwen_xml", undefined],
  [/qwq|qwen-?3.*thinking/, "qwen", "qwen3_thinking"],
  [/qwen-?3.*instruct/, "qwen", undefined],
  [/qwen-?3/, "qwen", "qwen3"],
  [/qwen|hermes/, "qwen", undefined],
  [/glm-?5|glm-?4[.-]?[7-9]/, "glm47_moe", "glm45"],
  [/glm-?4[.-]?[56]/, "glm45_moe", "glm45"],
  [/step-?3/, "step3", "step3"],
  [/minimax-?m3|mm-m3/, "minimax_m3", "minimax_m3"],
  [/minimax|mm-m2/, "minimax_m2", "minimax"],
  [/solar-?open-?2/, "solar_open2", "solar_open2"],
  [/laguna/, "glm47_moe", "glm45"],
  [/minicpm-?5/, "minicpm5", "base"],
  [/\bhy-?3/, "hy_v3", "hy_v3"],
  [/\bhy-?4/, "hy_v4", "hy_v3"],
  [/gigachat-?3[.-]?5/, "gigachat35", "gigachat35"],
  [/gigachat/, "gigachat3", undefined],
  [/apertus/, "apertus", "apertus"],
  [/plamo-?3/, "plamo3", "plamo3"],
  [/command-?(?:r|a)|c4ai|cohere/, "cohere", "cohere_cmd"],
  [/llama-?4/, "pythonic", undefined],
  [/nemotron.*(?:nano|super|ultra).*v?3|nano-?v3/, "qwen_xml", "nano_v3"],
  [/nemotron/, "nemotron", undefined],
  [/llama-?3[.-]?2/, "llama", undefined],
  [/llama/, "json", undefined],
  [/magistral/, "mistral", "mistral"],
  [/mistral|mixtral|ministral|devstral|codestral|pixtral/, "mistral", undefined],
  [/sarashina/, "sarashina", undefined],
  [/functiongemma/, "functiongemma", undefined],
  [/gemma-?4/, "gemma4", "gemma4"],
  [/gemma/, "json", undefined],
  [/granite-?4/, "qwen", undefined],
  [/granite/, "granite", "granite"],
  [/phi-?4-?mini/, "phi4_mini", undefined],
  [/internlm/, "internlm", undefined],
  [/jamba/, "jamba", undefined],
  [/hunyuan/, "hunyuan", "hunyuan_a13b"],
  [/xlam/, "xlam", undefined],
  [/seed-?oss/, "seed_oss", "seed_oss"],
  [/lfm-?2/, "lfm2", undefined],
  [/olmo-?3/, "olmo3", "olmo3"],
  [/ernie-?4/, "qwen", "ernie45"],
  [/longcat/, "longcat", undefined],
  [/exaone-?4/, "qwen", "exaone4"],
];

/** The parsers of a model: each from its template, else from its architecture, else from its name. */
export function detectParsers(source: ModelSource): DetectedParsers {
  const { chatTemplate = "", architectures = [], modelType, modelId = "" } = source;
  const kinds = modelType === undefined ? architectures : [modelType, ...architectures];
  const byKind = BY_ARCHITECTURE.find(([pattern]) => kinds.some((kind) => pattern.test(kind)));
  const name = modelId.toLowerCase().replaceAll(/[_\s]/g, "-");
  const byName = BY_NAME.find(([pattern]) => pattern.test(name));
  const tool = byTemplate(TOOLS_BY_TEMPLATE, chatTemplate) ?? byKind?.[1] ?? byName?.[1];
  // A template that renders calls but knows no reasoning has none, whatever the name says.
  const reasoning =
    byTemplate(REASONING_BY_TEMPLATE, chatTemplate) ?? (chatTemplate === "" ? (byKind ?? byName)?.[2] : undefined);
  return { ...(reasoning === undefined ? {} : { reasoning }), ...(tool === undefined ? {} : { tool }) };
}

const byTemplate = (rules: readonly TemplateRule[], template: string): string | undefined =>
  template === ""
    ? undefined
    : rules.find(([, ...markers]) => markers.every((marker) => template.includes(marker)))?.[0];

/** What begins or ends a turn: an opener before it belongs to another message. */
const TURN =
  /<\|(?!START_THINKING|open\||sep\||channel>)[^<>|\s]{1,40}\|?>|<｜[^<>｜]{1,40}｜>|<\/?s>|\[\/?INST\]|<(?:start|end)_of_turn>|<turn\|>|\]~b\]|\[e~\[|<seed:[be]os>|<SPECIAL_\d+>|\[\|[a-z]{1,20}\|\]/;

/**
 * Whether a rendered prompt ends inside an open reasoning block of this parser's format. Looks at no more of the prompt's end than it
 * takes to know. @throws UnknownParserError
 */
export function opensReasoning(prompt: string, reasoningParser: string): boolean {
  const unified = unifiedReasoning(reasoningParser);
  if (unified === "harmony") return endsInside(prompt, [HARMONY_ANALYSIS], ["<|end|>"], /<\|start\|>/);
  if (unified === "inkling") return endsInside(prompt, ["<|content_thinking|>"], ["<|end_message|>"], TURN);
  const family = reasoningFamily(reasoningParser);
  if (family === undefined || family.onlyAtStart === true) return false;
  return endsInside(prompt, family.open, family.close, TURN);
}

/**
 * Whether an answer to this prompt begins in reasoning: the prompt ends in an open block, or, with a parser of models that always reason
 * and need not write the opener, in no closed one. @throws UnknownParserError
 */
export function beginsInReasoning(prompt: string, reasoningParser: string): boolean {
  if (opensReasoning(prompt, reasoningParser)) return true;
  const family = reasoningFamily(reasoningParser);
  return family?.starts === "reasoning" && !endsInside(prompt, family.close, family.open, TURN);
}

/** Characters of a prompt's end that are looked at first: most prompts end with the header of a turn. */
const TAIL = 256;

function endsInside(prompt: string, open: readonly string[], close: readonly string[], turn: RegExp): boolean {
  const isEnded = (text: string) => close.some((marker) => text.includes(marker)) || turn.test(text);
  const longest = open.reduce((length, marker) => Math.max(length, marker.length), 0);
  for (let from = prompt.length, size = TAIL; from > 0; size *= 4) {
    from = Math.max(0, prompt.length - size);
    // an opener may lie across the border
    const tail = prompt.slice(Math.max(0, from - longest));
    const behind = open.reduce((end, marker) => {
      const at = tail.lastIndexOf(marker);
      return at < 0 ? end : Math.max(end, at + marker.length);
    }, -1);
    if (behind >= 0) return !isEnded(tail.slice(behind));
    // whatever opened before this part of the prompt was closed in it
    if (isEnded(prompt.slice(from))) return false;
  }
  return false;
}
