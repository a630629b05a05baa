import type { Peer } from "./peer.ts";

/** It is as in vLLM, the gateway or the engine refuses it with a message, or it is done otherwise, which is known and described. */
export type Verdict = "works" | { readonly refused: string } | { readonly differs: string };

/** One promise of the gateway, tried on every dialect at every age. A case throws where what it sees is none of the verdicts. */
export interface Case {
  readonly id: string;
  /** What it is to a reader of the page about engines. */
  readonly feature: string;
  run(peer: Peer): Promise<Verdict>;
}

/** The error of a promise. */
export async function failureOf(promise: Promise<unknown>): Promise<{ kind: string; message: string }> {
  try {
    await promise;
  } catch (error) {
    return error as { kind: string; message: string };
  }
  throw new Error("it did not fail");
}
