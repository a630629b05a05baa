import type { Answer, Question, SharedText } from "../fleet/control-link.ts";
import type { FleetSnapshot } from "../fleet/snapshot.ts";
import type { ServingOptions } from "../server/serving.ts";
import type { Counted } from "../telemetry/registry.ts";
import type { TokenizerHandle } from "../tokenizer/load.ts";
import type { EncodeOptions } from "../tokenizer/tokenizer.ts";

/** What control tells a serving thread. */
export type ToThread =
  | {
      readonly type: "start";
      readonly options: ServingOptions;
      readonly fleet: FleetSnapshot;
      /** To the thread that holds the history, where there is one; it goes along. */
      readonly historyPort?: MessagePort | undefined;
    }
  | { readonly type: "fleet"; readonly fleet: FleetSnapshot; readonly version: number }
  /** A worker was taken out: requests that have not begun there go elsewhere. */
  | { readonly type: "lost"; readonly slot: number }
  | { readonly type: "drain"; readonly graceMs: number }
  | { readonly type: "ping" }
  /** Asks for what the thread has counted. */
  | { readonly type: "metrics" }
  | { readonly type: "answer"; readonly id: number; readonly answer: Answer };

/** What a serving thread tells control. */
export type FromThread =
  | { readonly type: "listening"; readonly hostname: string; readonly port: number }
  /** It cannot begin: what it keeps for clients cannot be opened, or its port cannot be had. */
  | { readonly type: "failed"; readonly what: "history" | "port"; readonly message: string }
  | { readonly type: "applied"; readonly version: number }
  | { readonly type: "drained" }
  | { readonly type: "pong" }
  | { readonly type: "metrics"; readonly counted: Counted }
  | { readonly type: "question"; readonly id: number; readonly question: Question }
  /** Nobody waits for the answer any more. */
  | { readonly type: "forget"; readonly id: number };

/** What a compute thread is told; it answers each job with an `Answer`. */
export type ComputeJob =
  | { readonly type: "build"; readonly files: ReadonlyMap<string, Uint8Array>; readonly cacheDir: string | undefined }
  | {
      readonly type: "encode";
      readonly key: string;
      /** The tokenizer of this key, the first time. */
      readonly handle?: TokenizerHandle;
      readonly text: SharedText;
      readonly options: EncodeOptions;
    };

export type FromCompute = Answer;
