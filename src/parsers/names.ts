import { UnsupportedError } from "../errors.ts";
import { TOOL_FAMILIES, type ToolFamily } from "./families/index.ts";
import { REASONING_FAMILIES, type ReasoningFamily } from "./reasoning/index.ts";

/** A parser was named that does not exist. */
export class UnknownParserError extends UnsupportedError {
  constructor(kind: "tool call" | "reasoning", name: string, known: readonly string[]) {
    super(`There is no ${kind} parser '${name.slice(0, 100)}'; there are ${known.join(", ")}`);
  }
}

export const PASSTHROUGH = "passthrough";
/** Names for leaving text as it is; the last two keep MiniMax's thoughts in the text. */
const NO_PARSER: readonly string[] = [
  ...[PASSTHROUGH, "none", "identity"],
  ...["minimax_m2_append_think", "minimax-append-think"],
];

/** Names of vLLM, SGLang and SMG, and further spellings, to ours. */
const TOOL_ALIASES: Readonly<Record<string, string>> = {
  hermes: "qwen",
  qwen25: "qwen",
  qwen2_5: "qwen",
  qwen3: "qwen",
  exaone4: "qwen",
  ernie45: "qwen",
  granite4: "qwen",
  qwen_coder: "qwen_xml",
  qwen3_coder: "qwen_xml",
  qwen3_xml: "qwen_xml",
  qwen35: "qwen_xml",
  nemotron3: "qwen_xml",
  step3p5: "qwen_xml",
  mimo: "qwen_xml",
  llama3: "llama",
  llama3_json: "llama",
  llama4_json: "llama",
  llama4: "pythonic",
  llama4_pythonic: "pythonic",
  deepseek_v3: "deepseek",
  deepseekv3: "deepseek",
  deepseek_r1: "deepseek",
  deepseek_v31: "deepseek31",
  deepseekv31: "deepseek31",
  deepseek_v32: "deepseek32",
  deepseekv32: "deepseek32",
  deepseekv4: "deepseek_v4",
  deepseek4: "deepseek_v4",
  kimi_k2: "kimik2",
  kimi: "kimik2",
  kimi_k25: "kimik2",
  openai: "harmony",
  gpt_oss: "harmony",
  "gpt-oss": "harmony",
  glm: "glm47_moe",
  glm4_moe: "glm45_moe",
  glm45: "glm45_moe",
  glm46: "glm45_moe",
  glm47: "glm47_moe",
  glm5: "glm47_moe",
  poolside_v1: "glm47_moe",
  minimax: "minimax_m1",
  "minimax-m2": "minimax_m2",
  command_r: "cohere",
  cohere_command: "cohere",
  cohere_command3: "cohere",
  cohere_command4: "cohere",
  "granite-20b-fc": "granite",
  phi4: "phi4_mini",
  phi4_mini_json: "phi4_mini",
  internlm2: "internlm",
  hunyuan_a13b: "hunyuan",
  nemotron_json: "nemotron",
  nemotron_nano_v2: "nemotron",
  gemma3: "json",
  "seed-oss": "seed_oss",
  seed36: "seed_oss",
  olmo3_pythonic: "olmo3",
  longcat_flash: "longcat",
  "minimax-m3": "minimax_m3",
  apertus2509: "apertus",
};

const REASONING_ALIASES: Readonly<Record<string, string>> = {
  think: "base",
  basic: "base",
  "deepseek-r1": "deepseek_r1",
  deepseek_v3: "deepseek_v31",
  "deepseek-v3": "deepseek_v31",
  deepseek_v32: "deepseek_v31",
  deepseek_v4: "deepseek_v31",
  "deepseek-v31": "deepseek_v31",
  qwen: "qwen3",
  "qwen3-thinking": "qwen3_thinking",
  qwq: "qwen3_thinking",
  kimik2: "kimi_k2",
  kimi_k26: "kimi_k25",
  kimi_k2_thinking: "kimi_thinking",
  glm: "glm45",
  glm46: "glm45",
  glm47: "glm45",
  glm4_moe: "glm45",
  glm5: "glm45",
  poolside_v1: "glm45",
  minimax_m2: "minimax",
  cohere: "cohere_cmd",
  cohere_command: "cohere_cmd",
  cohere_command3: "cohere_cmd",
  cohere_command4: "cohere_cmd",
  nemotron: "nano_v3",
  nemotron_v3: "nano_v3",
  nemotron_nano_v3: "nano_v3",
  openai_gptoss: "harmony",
  openai: "harmony",
  gpt_oss: "harmony",
  "gpt-oss": "harmony",
  magistral: "mistral",
  hunyuan: "hunyuan_a13b",
  "seed-oss": "seed_oss",
  ernie: "ernie45",
  ernie_x1: "ernie45",
  holo2: "qwen3",
  mimo: "qwen3",
  interns1: "qwen3",
  "interns1-thinking": "qwen3",
  step3p5: "step3",
  "minimax-m3": "minimax_m3",
  hy_v4: "hy_v3",
};

const UNIFIED = Object.keys(TOOL_FAMILIES).filter((name) => TOOL_FAMILIES[name]!.isUnified === true);

/** All names that can be given, aliases included. */
export function parserNames(): { readonly reasoning: readonly string[]; readonly tool: readonly string[] } {
  return {
    reasoning: [...NO_PARSER, ...UNIFIED, ...Object.keys(REASONING_FAMILIES), ...Object.keys(REASONING_ALIASES)].sort(),
    tool: [...NO_PARSER, ...Object.keys(TOOL_FAMILIES), ...Object.keys(TOOL_ALIASES)].sort(),
  };
}

const lookUp = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** What a pair of names stands for: one parser for both, or one for each. */
export interface Families {
  readonly unified?: ToolFamily;
  readonly reasoning?: ReasoningFamily;
  readonly tool?: ToolFamily;
}

/** The families behind two names. @throws UnknownParserError @throws UnsupportedError names that do not go together */
export function familiesOf(reasoningName: string | undefined, toolName: string | undefined): Families {
  const tool = toolFamily(toolName);
  const shared = unifiedFamily(reasoningName);
  if (tool?.isUnified === true) return { unified: tool };
  if (shared === undefined) {
    const reasoning = reasoningFamily(reasoningName);
    return { ...(reasoning === undefined ? {} : { reasoning }), ...(tool === undefined ? {} : { tool }) };
  }
  if (tool === undefined) return { unified: shared };
  throw new UnsupportedError(
    `The reasoning parser '${reasoningName}' does not go with the tool call parser '${toolName}'`,
  );
}

const isNone = (name: string | undefined): name is undefined => name === undefined || NO_PARSER.includes(name);

/** The name that a tool parser's alias stands for; undefined: none parses. The name itself where it is unknown. */
export const toolParserName = (name: string | undefined): string | undefined =>
  isNone(name) ? undefined : (lookUp(TOOL_ALIASES, name) ?? name);

function toolFamily(name: string | undefined): ToolFamily | undefined {
  if (isNone(name)) return undefined;
  const family = lookUp(TOOL_FAMILIES, lookUp(TOOL_ALIASES, name) ?? name);
  if (family === undefined) throw new UnknownParserError("tool call", name, parserNames().tool);
  return family;
}

function unifiedFamily(name: string | undefined): ToolFamily | undefined {
  const family = isNone(name) ? undefined : lookUp(TOOL_FAMILIES, lookUp(REASONING_ALIASES, name) ?? name);
  return family?.isUnified === true ? family : undefined;
}

/** The name of the format that carries calls too, where the reasoning parser is one; else undefined. */
export function unifiedReasoning(name: string): string | undefined {
  return unifiedFamily(name) === undefined ? undefined : (lookUp(REASONING_ALIASES, name) ?? name);
}

/**
 * How an answer begins where no rendered prompt tells: in text, in reasoning, or as the request's thinking switch says.
 * @throws UnknownParserError
 */
export function defaultStart(reasoningParser: string | undefined): "text" | "reasoning" | "toggle" {
  return reasoningFamily(reasoningParser)?.starts ?? "text";
}

/** The reasoning family behind a name; undefined for none and for formats that carry calls too. @throws UnknownParserError */
export function reasoningFamily(name: string | undefined): ReasoningFamily | undefined {
  if (isNone(name) || unifiedFamily(name) !== undefined) return undefined;
  const family = lookUp(REASONING_FAMILIES, lookUp(REASONING_ALIASES, name) ?? name);
  if (family === undefined) throw new UnknownParserError("reasoning", name, parserNames().reasoning);
  return family;
}
