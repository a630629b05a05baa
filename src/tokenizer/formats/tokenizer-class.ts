import { jsonFile } from "../model-files.ts";

/** No class of a model's own: the files alone say how to tokenize. */
export const GENERIC = "TokenizersBackend";

/** Tokenizer classes by model type, as transformers 5.24 registers them; only those that matter for the formats read here. */
const REGISTERED: Readonly<Record<string, string>> = {
  [GENERIC]:
    "EvollaModel aria beam bigbird_pegasus canary flex_olmo glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr got_ocr2 gpt_bigcode gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared kimi_k25 kimi_linear kosmos-2 mimo_v2_flash minicpm_ocr minicpmv4_6 minicpmv4_7 ministral ministral3 mistral mistral3 mistral_large4 mixtral nemo_speechlm nystromformer olmo2 olmo3 olmo_hybrid omniasr pegasus_x persimmon pix2struct pixtral pocket_tts stablelm umt5 voxtral voxtral_realtime xlm-roberta-xl phimoe ernie4_5_moe camembertv2-base hyperclovax_vlm paddleocr_vl cohere_asr ernie4_5 modernbert vipllava llava hyperclovax openvla minicpmv jamba internlm3 h2ovl_chat step3_vl phi3_v arctic minicpm3 fuyu opencua iquestcoder molmo2 molmo nvfp4 llava_next smolvlm phi3 minimax_m2 internlm2 modernbert-decoder chatlm nemotron",
  Qwen2Tokenizer:
    "audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl lighton_ocr moss_transcribe_diarize ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe vibevoice",
  Qwen3_5Tokenizer: "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp",
  RobertaTokenizer: "bart bridgetower clap data2vec-text ibert lilt longformer mega mra roberta roberta-prelayernorm",
  GPT2Tokenizer:
    "blip-2 codegen dbrx emu3 gpt2 gpt_neo gptj hyperclovax_vision_v2 instructblip instructblipvideo jais2 opt phi starcoder2",
  GemmaTokenizer:
    "diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 t5gemma zaya",
  XLMRobertaTokenizer: "gte jina_embeddings_v3 metaclip_2 trocr xlm-roberta xmod",
  LlamaTokenizer: "idefics idefics2",
  T5Tokenizer: "mt5 musicgen musicgen_melody switch_transformers t5",
};
/** Model types whose registered class counts although tokenizer_config.json names another one. */
const REGISTERED_WINS = new Set(
  "hyperclovax_vision_v2 qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp".split(" "),
);

const byModelType = new Map(
  Object.entries(REGISTERED).flatMap(([name, types]) => types.split(" ").map((type) => [type, name] as const)),
);

/**
 * The class that makes a model's tokenizer, as transformers chooses it: by tokenizer_config.json and config.json, without "Fast" at its
 * end; `GENERIC` if it is none in particular. Throws `TokenizerError` if one of the files is not JSON.
 */
export function tokenizerClass(files: ReadonlyMap<string, Uint8Array>): string {
  const config = jsonFile(files, "config.json") ?? {};
  const type = config["model_type"];
  const registered = typeof type === "string" ? byModelType.get(type) : undefined;
  const named = text(jsonFile(files, "tokenizer_config.json")?.["tokenizer_class"]) ?? text(config["tokenizer_class"]);
  if (named === undefined) return registered ?? GENERIC;
  if (registered === undefined || registered === named) return named;
  return registered === GENERIC || REGISTERED_WINS.has(String(type)) ? registered : named;
}

function text(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  const name = value.replace(/Fast$/, "");
  return name === "PreTrainedTokenizer" || name === "PythonBackend" ? GENERIC : name;
}
