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
  /** The Python text of its `encoding/encoding_dsv4.py`: the only sure sign of the refresh of 2026-07-31. */
  readonly encoderSource?: string | undefined;
}

/** The encoder of a model; undefined: it has a template, or none that is known here. */
export function findEncoder({
  architectures = [],
  modelType,
  modelId = "",
  encoderSource,
}: ModelTraits): EncoderName | undefined {
  const is = (architecture: string, type: string): boolean =>
    architectures.includes(architecture) || modelType === type;
  if (is("DeepseekV41ForCausalLM", "deepseek_v41")) return "deepseek_v41";
  if (is("DeepseekV4ForCausalLM", "deepseek_v4"))
    return isRefresh(modelId, encoderSource) ? "deepseek_v4_0731" : "deepseek_v4";
  if (is("DeepseekV32ForCausalLM", "deepseek_v32")) return "deepseek_v32";
  if (is("KimiK3ForConditionalGeneration", "kimi_k3")) return "kimi_k3";
  if (is("GptOssForCausalLM", "gpt_oss") || modelId.toLowerCase().includes("gpt-oss")) return "harmony";
  return undefined;
}

/** Its config.json is that of V4; the encoder beside it has three levels of effort, and the id has the date. */
const isRefresh = (modelId: string, encoderSource: string | undefined): boolean =>
  encoderSource === undefined ? modelId.includes("0731") : encoderSource.includes("REASONING_EFFORT_PROMPTS");
