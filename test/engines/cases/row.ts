import type { ChatBody } from "../answer.ts";

/** One request that is put to both servers, once streamed and once not. */
export interface EngineCase {
  readonly name: string;
  readonly model: "tiny" | "smollm2";
  readonly body: ChatBody;
  /** Text that every choice must have, besides being equal on both sides. */
  readonly expectText?: string | RegExp;
  readonly expectStatus?: number;
  /** Words that our error message must have. */
  readonly expectError?: RegExp;
  /** Why this case is judged by `expect…` alone and not by the peer. */
  readonly peerDiffers?: string;
}

/** Name, what the body has besides model and messages, expectations. */
export type Row = [name: string, body: ChatBody, rest?: Partial<EngineCase>];

/** End of a turn in Qwen's vocabulary. */
export const EOS = 151645;
/** End of text: the model's second EOS, named by generation_config.json only. */
export const SECOND_EOS = 151643;
/** The token "Hello". */
export const HELLO = 9707;
/** The first byte of a two-byte character. */
export const HALF = 127;

/** Both servers' texts can be defended here, so the case is judged alone. */
export const LOST_BYTES =
  "vLLM leaves bytes that never become a character out of the text; Collie shows each as U+FFFD";

/**
 * vLLM looks at its list of stop strings in order after each token and takes the first that it finds: what it answers depends on
 * that order and on how the text falls into tokens. Collie's rule knows neither.
 */
export const STOP_ORDER =
  "vLLM takes the first stop string of its list that is complete at a token; Collie the one that starts first, of those the longest";

/** Makes the model say "Hello" n times. */
export const hello = (n: number): ChatBody => ({ logit_bias: { [HELLO]: 100 }, max_tokens: n });
export const user = (content: string) => [{ role: "user", content }];
export const greedy = { temperature: 0, max_tokens: 40 };
/** Makes the model say one of these texts. */
export const say = (...choice: string[]) => ({ structured_outputs: { choice } });
export const SENTENCE = "Hello world, this is a test: naïve 思考🙂 done.";
export const forced = { ...say(SENTENCE), temperature: 0, max_tokens: 200 };
