/** Constraint on the output as the request carried it. */
export interface RequestedConstraint {
  readonly kind: "json_schema" | "regex" | "grammar" | "structural_tag" | "json_object" | "choice";
  /** Text of the constraint; for `json_object` "true" or "false". */
  readonly value: string;
  /** For `choice`. */
  readonly choices: readonly string[];
}

/** Sampling parameters as an engine understood them, whatever the dialect. Absent members were absent on the wire. */
export interface Sampling {
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  frequencyPenalty: number;
  presencePenalty: number;
  repetitionPenalty: number;
  maxTokens?: number;
  minTokens: number;
  stop: string[];
  stopTokenIds: number[];
  skipSpecialTokens: boolean;
  spacesBetweenSpecialTokens: boolean;
  includeStopStrInOutput: boolean;
  ignoreEos: boolean;
  /** Leave a final stop token in the ids, where the engine trims it off otherwise. */
  keepStop: boolean;
  n: number;
  logprobs?: number;
  promptLogprobs?: number;
  /** First prompt token of which logprobs are told. */
  promptLogprobsFrom: number;
  /** Ids whose logprobs are told at each position. */
  tokenIdsLogprob: number[];
  seed?: number;
  truncatePromptTokens?: number;
  /** Pairs of token id and bias. */
  logitBias: [number, number][];
  constraint?: RequestedConstraint;
}

/** Neutral values, where a request said nothing. */
export function defaultSampling(): Sampling {
  return {
    temperature: 1,
    topP: 1,
    topK: 0,
    minP: 0,
    frequencyPenalty: 0,
    presencePenalty: 0,
    repetitionPenalty: 1,
    minTokens: 0,
    stop: [],
    stopTokenIds: [],
    skipSpecialTokens: false,
    spacesBetweenSpecialTokens: false,
    includeStopStrInOutput: false,
    ignoreEos: false,
    keepStop: false,
    n: 1,
    promptLogprobsFrom: 0,
    tokenIdsLogprob: [],
    logitBias: [],
  };
}
