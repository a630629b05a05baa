/** How much of a prompt each candidate's cache holds. */
import type { ChainKeys } from "../../threads/prefix-types.ts";
import type { RouteAsk } from "../ask.ts";
import type { Candidate, PolicyContext } from "../policy.ts";

/** A prompt is hashed once for each size of blocks among the candidates; of further sizes nothing is known to match. */
const MOST_SIZES = 3;

/** The answers for one prompt after another; reused. */
export class PrefixLookup {
  private tokens = new Int32Array(64);
  private exact = new Uint8Array(64);
  private readonly chains: ChainKeys[] = [];

  /** Tokens that the candidate of this index holds and the engine need not compute. */
  matched(index: number): number {
    return this.tokens[index]!;
  }

  /** It told so by its events. */
  isExact(index: number): boolean {
    return this.exact[index] === 1;
  }

  /** The chain for a candidate's size of blocks. */
  chainOf({ blockSize }: Candidate): ChainKeys | undefined {
    for (const chain of this.chains) if (chain.blockSize === blockSize) return chain;
    return undefined;
  }

  /**
   * What is only guessed of a cache counts from the settings' share of the prompt on. An engine computes the last token of a prompt
   * always, so the block of that one is never counted.
   */
  find(candidates: readonly Candidate[], ask: RouteAsk, context: PolicyContext): void {
    const count = candidates.length;
    if (count > this.tokens.length) {
      this.tokens = new Int32Array(2 * count);
      this.exact = new Uint8Array(2 * count);
    }
    this.tokens.fill(0, 0, count);
    this.exact.fill(0, 0, count);
    this.chains.length = 0;
    const ids = ask.tokenIds;
    if (ids === undefined) return;
    const least = context.settings.cacheThreshold * ids.length;
    for (let i = 0; i < count; i++) {
      const { blockSize } = candidates[i]!;
      if (blockSize > ids.length || this.chainOf(candidates[i]!) !== undefined) continue;
      this.findOf(candidates, i, blockSize, ids, least, ask, context);
      if (this.chains.length === MOST_SIZES) return;
    }
  }

  /** For all candidates of this size, from index `from` on. */
  private findOf(
    candidates: readonly Candidate[],
    from: number,
    blockSize: number,
    ids: Uint32Array,
    least: number,
    { lora, cacheSalt, media }: RouteAsk,
    { index, model, now }: PolicyContext,
  ): void {
    const chain = index.chain(index.root(model, blockSize, lora, cacheSalt), ids, blockSize, media);
    this.chains.push(chain);
    const match = index.match(chain, now);
    const most = Math.floor((ids.length - 1) / blockSize);
    for (let i = from; i < candidates.length; i++) {
      const candidate = candidates[i]!;
      if (candidate.blockSize !== blockSize || candidate.member < 0) continue;
      const depth = match.depth(candidate.member);
      if (depth === 0) continue;
      const tokens = Math.min(depth, most) * blockSize;
      const isExact = match.isExact(candidate.member);
      if (!isExact && tokens < least) continue;
      this.tokens[i] = tokens;
      this.exact[i] = isExact ? 1 : 0;
    }
  }
}
