/** How each dialect writes down what was asked, as the official stubs show it: proto3 JSON, without what is absent or zero. */

export interface Asked {
  readonly ids: readonly number[];
  readonly temperature: number;
  readonly topP: number;
  /** 0 = off. */
  readonly topK: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly repetitionPenalty: number;
  readonly maxTokens: number;
  readonly minTokens: number;
  readonly n: number;
  readonly seed?: number;
  readonly ignoreEos: boolean;
  readonly stopTokenIds: readonly number[];
  readonly logitBias: Readonly<Record<string, number>>;
  readonly skipSpecialTokens: boolean;
  readonly constraint?: { readonly kind: ConstraintKind; readonly value: string; readonly choices?: readonly string[] };
}
export type ConstraintKind = "json_schema" | "json_object" | "regex" | "grammar" | "choice" | "structural_tag";
export interface WireForm {
  /** Whether the engine tells sampling defaults, which the gateway then applies. */
  readonly hasDefaults: boolean;
  expected(asked: Asked): Record<string, unknown>;
}

/** The EOS ids of the model's files. */
export const EOS_IDS = [151645, 151643];
const ANY_OBJECT = '{"type":"object"}';

/** Without zeros, false and empty lists or maps. */
function plain(fields: Record<string, unknown>): Record<string, unknown> {
  const isZero = (value: unknown): boolean =>
    value === undefined ||
    value === 0 ||
    value === false ||
    (typeof value === "object" && value !== null && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isZero(value)));
}
/** What has presence: shown when it is there, zero or not. */
const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const positive = (value: number): number | undefined => (value === 0 ? undefined : value);

/** The text that a constraint is where choices are a regular expression, and any object is a schema. */
function asText({ kind, value, choices = [] }: NonNullable<Asked["constraint"]>): [ConstraintKind, string] {
  if (kind === "json_object") return ["json_schema", ANY_OBJECT];
  return kind === "choice" ? ["regex", `(${choices.join("|")})`] : [kind, value];
}

/** The member of a oneof that SGLang and TokenSpeed have alike. */
function constraintMember(asked: Asked): Record<string, unknown> {
  if (asked.constraint === undefined) return {};
  const [kind, value] = asText(asked.constraint);
  return { [kind === "grammar" ? "ebnf_grammar" : kind]: value };
}

const withStops = (asked: Asked): number[] =>
  asked.ignoreEos ? [...asked.stopTokenIds] : [...asked.stopTokenIds, ...EOS_IDS];

export const vllmForm: WireForm = {
  hasDefaults: true,
  expected(asked) {
    const { constraint } = asked;
    const member =
      constraint === undefined
        ? {}
        : constraint.kind === "choice"
          ? { choice: { choices: constraint.choices } }
          : Object.fromEntries([asText(constraint)]);
    const sampling = {
      ...plain({
        top_p: asked.topP,
        top_k: asked.topK,
        min_p: asked.minP,
        frequency_penalty: asked.frequencyPenalty,
        presence_penalty: asked.presencePenalty,
        repetition_penalty: asked.repetitionPenalty,
        min_tokens: asked.minTokens,
        n: asked.n,
        ignore_eos: asked.ignoreEos,
        stop_token_ids: asked.stopTokenIds,
        logit_bias: asked.logitBias,
        skip_special_tokens: asked.skipSpecialTokens,
        spaces_between_special_tokens: true,
      }),
      ...present({ temperature: asked.temperature, max_tokens: asked.maxTokens, seed: asked.seed }),
      ...member,
    };
    return { tokenized: { input_ids: asked.ids }, sampling_params: sampling };
  },
};

export const sglangForm: WireForm = {
  hasDefaults: true,
  expected(asked) {
    const sampling = {
      ...plain({
        temperature: asked.temperature,
        top_p: asked.topP,
        top_k: asked.topK > 0 ? asked.topK : -1,
        min_p: asked.minP,
        frequency_penalty: asked.frequencyPenalty,
        presence_penalty: asked.presencePenalty,
        repetition_penalty: asked.repetitionPenalty,
        min_new_tokens: asked.minTokens,
        n: asked.n,
        ignore_eos: asked.ignoreEos,
        stop_token_ids: asked.stopTokenIds,
        logit_bias: asked.logitBias,
        skip_special_tokens: asked.skipSpecialTokens,
        spaces_between_special_tokens: true,
      }),
      max_new_tokens: asked.maxTokens,
      ...constraintMember(asked),
    };
    return {
      tokenized: { input_ids: asked.ids },
      sampling_params: sampling,
      logprob_start_len: -1,
      // Several choices are made at once only so.
      ...(asked.n > 1 && { stream: true }),
    };
  },
};

export const tokenspeedForm: WireForm = {
  hasDefaults: true,
  expected(asked) {
    const sampling = {
      ...plain({
        min_new_tokens: asked.minTokens,
        n: asked.n,
        ignore_eos: asked.ignoreEos,
        stop_token_ids: asked.stopTokenIds,
        logit_bias: asked.logitBias,
        skip_special_tokens: asked.skipSpecialTokens,
        spaces_between_special_tokens: true,
      }),
      ...present({
        temperature: asked.temperature,
        top_p: asked.topP,
        top_k: asked.topK > 0 ? asked.topK : -1,
        min_p: asked.minP,
        frequency_penalty: asked.frequencyPenalty,
        presence_penalty: asked.presencePenalty,
        repetition_penalty: asked.repetitionPenalty,
        max_new_tokens: asked.maxTokens,
        sampling_seed: unsigned(asked.seed),
      }),
      ...constraintMember(asked),
    };
    return { tokenized: { input_ids: asked.ids }, sampling_params: sampling };
  },
};

/** 64 bits without sign; proto3 JSON shows them as a text. */
const unsigned = (seed: number | undefined): string | undefined =>
  seed === undefined ? undefined : String(BigInt.asUintN(64, BigInt(seed)));

const GUIDES: Readonly<Record<string, string>> = {
  json_schema: "GUIDE_TYPE_JSON_SCHEMA",
  regex: "GUIDE_TYPE_REGEX",
  grammar: "GUIDE_TYPE_EBNF_GRAMMAR",
  structural_tag: "GUIDE_TYPE_STRUCTURAL_TAG",
};

export const trtllmForm: WireForm = {
  hasDefaults: false,
  expected(asked) {
    const config = {
      beam_width: 1,
      num_return_sequences: asked.n,
      ...present({
        temperature: asked.temperature,
        top_p: asked.topP,
        top_k: positive(asked.topK),
        min_p: positive(asked.minP),
        frequency_penalty: positive(asked.frequencyPenalty),
        presence_penalty: positive(asked.presencePenalty),
        repetition_penalty: asked.repetitionPenalty,
        min_tokens: positive(asked.minTokens),
        seed: unsigned(asked.seed),
      }),
    };
    const guide = asked.constraint && asText(asked.constraint);
    return {
      tokenized: { input_token_ids: asked.ids },
      sampling_config: config,
      output_config: { exclude_input_from_output: true },
      max_tokens: asked.maxTokens,
      ...plain({ stop_token_ids: withStops(asked), ignore_eos: asked.ignoreEos }),
      ...(guide && { guided_decoding: { guide_type: GUIDES[guide[0]], guide: guide[1] } }),
    };
  },
};

export const mlxForm: WireForm = {
  hasDefaults: false,
  expected(asked) {
    const sampling = {
      ...plain({
        top_p: asked.topP,
        top_k: asked.topK,
        min_p: asked.minP,
        frequency_penalty: asked.frequencyPenalty,
        presence_penalty: asked.presencePenalty,
        repetition_penalty: asked.repetitionPenalty,
        ignore_eos: asked.ignoreEos,
        stop_token_ids: withStops(asked),
        logit_bias: asked.logitBias,
      }),
      ...present({ temperature: asked.temperature, max_tokens: asked.maxTokens, seed: asked.seed }),
    };
    return { tokenized: { input_ids: asked.ids }, sampling_params: sampling };
  },
};
