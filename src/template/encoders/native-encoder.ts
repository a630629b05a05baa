/** Prompt formats that are no Jinja templates, by the models that have them. A template given for a model wins over its encoder. */
import type { ChatTemplate } from "../chat-template.ts";
import { deepseekV4, deepseekV41, deepseekV40731 } from "./deepseek-v4.ts";
import { deepseekV32 } from "./deepseek-v32.ts";
import { harmony } from "./harmony.ts";
import { kimiK3 } from "./kimi-k3.ts";

const ENCODERS = {
  harmony,
  deepseek_v32: deepseekV32,
  deepseek_v4: deepseekV4,
  deepseek_v4_0731: deepseekV40731,
  deepseek_v41: deepseekV41,
  kimi_k3: kimiK3,
} as const satisfies Readonly<Record<string, ChatTemplate>>;

export type EncoderName = keyof typeof ENCODERS;
export const ENCODER_NAMES = Object.keys(ENCODERS) as readonly EncoderName[];

/** Renders as a chat template does. Its `render` refuses what the published encoder refuses with a ChatTemplateRefusal. */
export const nativeEncoder = (name: EncoderName): ChatTemplate => ENCODERS[name];

/** What is known of a model. */
export interface ModelTraits {
  /** `architectures` of its config.json. */
  readonly architectures?: readonly string[] | undefined;
  /** `model_type` of its config.json. */
  readonly modelType?: string | undefined;
  readonly modelId?: string | undefined;
  /** Texts of the encoders in Python that its repository holds, by file name: `encoding_dsv4.py` and the like. */
  readonly encoders?: ReadonlyMap<string, string> | undefined;
}

/** The encoder of a model; undefined: it has a template, or none that is known here. */
export function findEncoder({
  architectures = [],
  modelType,
  modelId = "",
  encoders = new Map(),
}: ModelTraits): EncoderName | undefined {
  const is = (architecture: string, type: string, file?: string): boolean =>
    architectures.includes(architecture) || modelType === type || (file !== undefined && encoders.has(file));
  if (is("DeepseekV41ForCausalLM", "deepseek_v41")) return "deepseek_v41";
  if (is("DeepseekV4ForCausalLM", "deepseek_v4", DSV4))
    return isRefresh(modelId, encoders.get(DSV4)) ? "deepseek_v4_0731" : "deepseek_v4";
  // V3.2-Exp is of the same architecture, and has the template of V3.1
  if (is("DeepseekV32ForCausalLM", "deepseek_v32", "encoding_dsv32.py") && !/v3[._-]?2-exp/i.test(modelId))
    return "deepseek_v32";
  if (is("KimiK3ForConditionalGeneration", "kimi_k3", "encoding_k3.py")) return "kimi_k3";
  if (is("GptOssForCausalLM", "gpt_oss") || modelId.toLowerCase().includes("gpt-oss")) return "harmony";
  return undefined;
}

const DSV4 = "encoding_dsv4.py";

/** Its config.json is that of V4; the encoder beside it is the only sure sign: it has three levels of effort. The id has the date. */
const isRefresh = (modelId: string, source: string | undefined): boolean =>
  source === undefined ? modelId.includes("0731") : source.includes("REASONING_EFFORT_PROMPTS");
