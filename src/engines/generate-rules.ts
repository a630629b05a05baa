import type { ResponseLayout } from "./decode.ts";
import type { EngineFinishReason, GenerateRequest } from "./engine.ts";
import type { EngineFacts } from "./facts.ts";

/** All in which the dialects differ in one Generate call. */
export interface GenerateRules {
  readonly path: string;
  /** Throws EngineError "invalid" for what the engine would not check itself, or drop. */
  encode(request: GenerateRequest, facts: EngineFacts): Uint8Array;
  readonly layout: ResponseLayout;
  /** The count of tokens in a Complete is that of its message only; otherwise it is right, with trimmed stop tokens. */
  readonly countsMessages: boolean;
  /** Several choices are made at once, and tell which they are, only in a stream: the engine is always asked for one then. */
  readonly streamsSeveral: boolean;
  /** As the engine spells them; unknown ones are failures. */
  readonly reasons: ReadonlyMap<string, EngineFinishReason>;
  /**
   * Below this temperature the engine is greedy, and refuses several samples. They would all be the same, so one is asked for and
   * given out as each choice.
   */
  readonly oneSampleBelow: number;
  /** The value of the first prompt token, before which nothing came, is no logprob. */
  readonly firstPromptLogprobIsNone: boolean;
  /** What a stream says that ends with OK before the generation is over. */
  readonly bareEnd: string;
}

export const COMMON_RULES = {
  countsMessages: false,
  streamsSeveral: false,
  oneSampleBelow: 0,
  firstPromptLogprobIsNone: false,
  bareEnd: "the engine ended the stream before the end of the generation",
} as const satisfies Partial<GenerateRules>;
