// Writes the tables of docs/models.md from the code that chooses and parses:   node scripts/bun.mjs run scripts/models-docs.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ENGINE_CONSTRAINTS } from "../src/apis/shared/planning.ts";
import { DIALECTS, type Dialect } from "../src/engines/dialects.ts";
import { constraintsOf } from "../src/engines/features.ts";
import { chosenParsers, modelTemplate } from "../src/fleet/model-kind.ts";
import { planTools } from "../src/generation/tools/plan.ts";
import { TOOL_FAMILIES } from "../src/parsers/families/index.ts";
import { defaultStart, parserNames, reasoningFamily, toolParserName, unifiedReasoning } from "../src/parsers/names.ts";
import { REASONING_FAMILIES } from "../src/parsers/reasoning/index.ts";

/** The page that holds the tables. */
export const modelsPage = join(import.meta.dir, "..", "docs", "models.md");

/** A family: `modelType` of its config.json, a name, and what its template has of the markers of its format. */
export interface FamilySample {
  readonly family: string;
  readonly modelType: string;
  readonly modelId: string;
  readonly markers: readonly string[];
}

const sample = (family: string, modelType: string, modelId: string, ...markers: readonly string[]): FamilySample => ({
  family,
  modelType,
  modelId,
  markers,
});

const CALLS_OF_DEEPSEEK = "<｜tool▁calls▁begin｜>";
const CALLS_OF_KIMI = "<|tool_calls_section_begin|>";
const FUNCTION_TAGS = ["<tool_call>", "<function=", "<parameter="];

export const FAMILIES: readonly FamilySample[] = [
  sample("Llama 3.1 to 3.3", "llama", "meta-llama/Llama-3.1-8B-Instruct", "<|python_tag|>"),
  sample("Llama 4", "llama4", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "<|python_start|>"),
  sample("Qwen 2.5", "qwen2", "Qwen/Qwen2.5-7B-Instruct", "<|im_start|>", "<tool_call>"),
  sample("Qwen 3", "qwen3", "Qwen/Qwen3-8B", "<|im_start|>", "<tool_call>", "</think>"),
  sample("Qwen 3 Coder", "qwen3_moe", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "<|im_start|>", ...FUNCTION_TAGS),
  sample("Qwen 3.5", "qwen3_5", "Qwen/Qwen3.5-27B", "<|im_start|>", ...FUNCTION_TAGS, "</think>"),
  sample("Hermes", "llama", "NousResearch/Hermes-3-Llama-3.1-8B", "<|im_start|>", "<tool_call>"),
  sample("gpt-oss", "gpt_oss", "openai/gpt-oss-20b"),
  sample("DeepSeek V3", "deepseek_v3", "deepseek-ai/DeepSeek-V3", "<｜Assistant｜>", CALLS_OF_DEEPSEEK, "```json"),
  sample("DeepSeek R1", "deepseek_v3", "deepseek-ai/DeepSeek-R1", "</think>", CALLS_OF_DEEPSEEK, "```json"),
  sample("DeepSeek V3.1", "deepseek_v3", "deepseek-ai/DeepSeek-V3.1", "<｜Assistant｜>", "</think>", CALLS_OF_DEEPSEEK),
  sample("DeepSeek V3.2", "deepseek_v32", "deepseek-ai/DeepSeek-V3.2"),
  sample("DeepSeek V4", "deepseek_v4", "deepseek-ai/DeepSeek-V4"),
  sample("DeepSeek V4 of 2026-07-31", "deepseek_v4", "deepseek-ai/DeepSeek-V4-0731"),
  sample("DeepSeek V4.1", "deepseek_v41", "deepseek-ai/DeepSeek-V4.1"),
  sample("Kimi K2", "kimi_k2", "moonshotai/Kimi-K2-Instruct", CALLS_OF_KIMI),
  sample("Kimi K2 Thinking, K2.5", "kimi_k25", "moonshotai/Kimi-K2.5", CALLS_OF_KIMI, "</think>"),
  sample("Kimi K3", "kimi_k3", "moonshotai/Kimi-K3"),
  sample("GLM 4.5, 4.6", "glm4_moe", "zai-org/GLM-4.6", "<arg_key>", "</arg_key>\\n", "</think>"),
  sample("GLM 4.7, 5", "glm4_moe", "zai-org/GLM-4.7", "<arg_key>", "</think>"),
  sample("Laguna", "laguna", "poolside/Laguna-M.1", "<tool_call>", "<arg_key>", "</think>"),
  sample("Solar Open 2", "solar_open2", "upstage/Solar-Open2-250B", "<|tool_call:start|>", "<|think:start|>"),
  sample("MiniCPM 5", "minicpm", "openbmb/MiniCPM5-2B", '<function name="', '<param name="', "</think>"),
  sample("MiniMax M2", "minimax_m2", "MiniMaxAI/MiniMax-M2", "<minimax:tool_call>", "</think>"),
  sample("MiniMax M3", "minimax_m3_vl", "MiniMaxAI/MiniMax-M3", "]<]minimax[>[", "<tool_call>", "<mm:think>"),
  sample("Mistral", "mistral", "mistralai/Mistral-Small-3.2", "[TOOL_CALLS]"),
  sample("Magistral", "mistral", "mistralai/Magistral-Small-2509", "[TOOL_CALLS]", "[THINK]"),
  sample("Step 3", "step3_vl", "stepfun-ai/step3", "<steptml:invoke", "<think>"),
  sample("Command R, Command A", "cohere2", "CohereLabs/command-a", "<|START_ACTION|>", "<|START_THINKING|>"),
  sample("Gemma 3", "gemma3", "google/gemma-3-12b-it", "<start_of_turn>"),
  sample("FunctionGemma", "gemma3_text", "google/functiongemma-270m-it", "<start_function_call>"),
  sample("Gemma 4", "gemma4", "google/gemma-4-27b-it", "<|tool_call>", "<|channel>"),
  sample("Granite 3", "granite", "ibm-granite/granite-3.3-8b", "<|tool_call|>", "Here is my thought process:"),
  sample("Granite 4", "granitemoehybrid", "ibm-granite/granite-4.0-h-small", "<tool_call>"),
  sample("Phi-4 mini", "phi3", "microsoft/Phi-4-mini-instruct", "<|tool|>"),
  sample("InternLM 2.5", "internlm2", "internlm/internlm2_5-7b-chat", "<|action_start|>"),
  sample("Jamba", "jamba", "ai21labs/AI21-Jamba-Mini-1.7", "<tool_calls>"),
  sample("Hunyuan A13B", "hunyuan_v1_moe", "tencent/Hunyuan-A13B", "<tool_calls>", "<answer>", "</think>"),
  sample("Hunyuan 3", "hy_v3", "tencent/Hy3-preview", "<tool_calls", "<tool_sep", "<arg_key", "<think"),
  sample("Hunyuan 4", "hy_v4", "tencent/Hy4-preview", "<tool_calls", "<arg_key", "<think"),
  sample("Nemotron Nano v2", "nemotron_h", "nvidia/NVIDIA-Nemotron-Nano-9B-v2", "<TOOLCALL>", "</think>"),
  sample("Nemotron 3", "nemotron_h", "nvidia/Nemotron-3-Nano", "<|im_start|>", ...FUNCTION_TAGS, "</think>"),
  sample("xLAM", "llama", "Salesforce/xLAM-2-8b-fc-r", "<|start_header_id|>"),
  sample("Seed-OSS", "seed_oss", "ByteDance-Seed/Seed-OSS-36B", "<seed:tool_call>", "<seed:think>"),
  sample("LFM2", "lfm2", "LiquidAI/LFM2-1.2B", "<|im_start|>", "<|tool_call_start|>"),
  sample("OLMo 3", "olmo3", "allenai/Olmo-3-7B-Think", "<|im_start|>", "<function_calls>", "<think>"),
  sample("ERNIE 4.5", "ernie4_5_moe", "baidu/ERNIE-4.5", "<tool_call>", "<response>", "</think>"),
  sample("EXAONE 4", "exaone4", "LGAI-EXAONE/EXAONE-4.0-32B", "[|assistant|]", "<tool_call>", "</think>"),
  sample("LongCat", "longcat_flash", "meituan-longcat/LongCat-Flash-Chat", "<longcat_tool_call>"),
  sample("GigaChat 3", "deepseek_v3", "ai-sage/GigaChat3-10B-A1.8B", "function call", "<|role_sep|>"),
  sample("GigaChat 3.5", "deepseek_v3", "ai-sage/GigaChat3.5", "<｜GCML｜tool_calls>", "</think>"),
  sample("Apertus", "apertus", "swiss-ai/Apertus-8B-Instruct-2509", "<|tools_prefix|>", "<|inner_prefix|>"),
  sample("PLaMo 3", "plamo3", "pfnet/plamo-3", "<|plamo:begin_tool_requests:plamo|>", "<|plamo:begin_think:plamo|>"),
  sample("Sarashina", "llama", "sbintuitions/sarashina2.2-3b", "<|tool_calls|>"),
  sample("Inkling", "inkling", "inkling", "<|content_invoke_tool_json|>", "<|content_thinking|>"),
];

const cell = (text: string) => text.replaceAll("|", "\\|");
const code = (text: string | undefined) => (text === undefined ? "" : `\`${cell(text)}\``);
const codes = (names: readonly string[]) => names.map(code).join(", ");

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

/** The engines that are spoken to, those together that are held to the same. */
const ENGINES: readonly (readonly Dialect[])[] = [
  DIALECTS.filter(({ features }) => constraintsOf(features).size > 0),
  DIALECTS.filter(({ features }) => constraintsOf(features).size === 0),
];
const forcedHeads = ENGINES.map((dialects) => `Forced call, ${codes(dialects.map(({ name }) => name))}`);
const forcedCells = (tool: string | undefined): string[] =>
  ENGINES.map((dialects) => [...new Set(dialects.map((dialect) => forcedBy(tool, dialect)))].join(", "));

/** How an engine is made to call a tool in the form that this parser reads. */
function forcedBy(tool: string | undefined, { features }: Dialect): string {
  const engineConstraints = constraintsOf(features);
  if (engineConstraints.size === 0) return "refused";
  const { constraint } = planTools(
    {
      tools: [{ type: "function", name: "f", strict: false }],
      toolChoice: { mode: "required" },
      parallelToolCalls: true,
    },
    { toolParser: tool, startsInReasoning: false, engineConstraints },
  );
  if (constraint === undefined) throw new Error(`a call for ${tool} would not be forced`);
  return { json_schema: "JSON schema", structural_tag: "structural tag" }[constraint.kind as string] ?? constraint.kind;
}

/** What an engine is held to where a request has tools and a format of the answer, and the model may choose. */
function besideFormat(tool: string | undefined): string {
  const { constraint } = planTools(
    {
      tools: [{ type: "function", name: "f", strict: false }],
      toolChoice: { mode: "auto" },
      parallelToolCalls: true,
    },
    {
      ...{ toolParser: tool, startsInReasoning: false, engineConstraints: ENGINE_CONSTRAINTS },
      constraint: { kind: "json_object" },
    },
  );
  if (constraint === undefined) return "the format alone";
  return constraint.kind === "structural_tag" && constraint.tag.includes('"any_text"')
    ? "either; calls are free from their marker on"
    : "either";
}

/** What a model of the family gets without any flag. */
export function familyTraits({ modelType, modelId, markers }: FamilySample) {
  const source = markers.join(" ");
  const kind = { modelType, modelId };
  const encoder = modelTemplate(kind, new Map())?.encoder;
  const nothing = { reasoningParser: undefined, toolCallParser: undefined };
  return { encoder, ...chosenParsers(nothing, { ...kind, chatTemplate: source }) };
}

function familyTable(): string {
  const rows = FAMILIES.map((each) => {
    const { encoder, reasoning, tool } = familyTraits(each);
    const template = encoder === undefined ? "Jinja" : `native encoder ${code(encoder)}`;
    return [each.family, template, code(reasoning), code(tool), ...forcedCells(tool)];
  });
  return table(["Family", "Prompts by", "Reasoning parser", "Tool parser", ...forcedHeads], rows);
}

function toolTable(): string {
  const { tool } = parserNames();
  const rows = Object.keys(TOOL_FAMILIES).map((name) => {
    const also = tool.filter((alias) => alias !== name && toolParserName(alias) === name);
    return [code(name), codes(also), ...forcedCells(name), besideFormat(name)];
  });
  const off = tool.filter((name) => toolParserName(name) === undefined);
  rows.push(["no parser", codes(off), ...forcedCells(undefined), besideFormat(undefined)]);
  return table(["Tool parser", "Also called", ...forcedHeads, "A call beside a format"], rows);
}

const STARTS = {
  text: "text",
  reasoning: "reasoning, unless the prompt closed a block",
  toggle: "text",
};

function reasoningTable(): string {
  const names = parserNames().reasoning;
  const unified = Object.keys(TOOL_FAMILIES).filter((name) => unifiedReasoning(name) === name);
  const rows = [...unified, ...Object.keys(REASONING_FAMILIES)].map((name) => {
    const family = unified.includes(name) ? undefined : reasoningFamily(name);
    const also = names.filter((alias) => {
      if (alias === name || Object.hasOwn(REASONING_FAMILIES, alias)) return false;
      return family === undefined ? unifiedReasoning(alias) === name : reasoningFamily(alias) === family;
    });
    return [code(name), codes(also), STARTS[defaultStart(name)]];
  });
  const off = names.filter((name) => reasoningFamily(name) === undefined && unifiedReasoning(name) === undefined);
  rows.push(["no parser", codes(off), "text"]);
  return table(["Reasoning parser", "Also called", "Where the prompt opens no block, an answer begins in"], rows);
}

const TABLES: Readonly<Record<string, () => string>> = {
  families: familyTable,
  "tool parsers": toolTable,
  "reasoning parsers": reasoningTable,
};

/**
 * The page with its tables made new. They stand between `<!-- table of families -->` and `<!-- end -->`.
 * @throws Error for a mark that names no table
 */
export function withModelTables(page: string): string {
  return page.replace(
    /(<!-- table of ([\w ]+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      const make = TABLES[name];
      if (make === undefined) throw new Error(`there is no table of ${name}`);
      return `${begin}\n${make()}\n\n${end}`;
    },
  );
}

if (import.meta.main) writeFileSync(modelsPage, withModelTables(readFileSync(modelsPage, "utf8")));
