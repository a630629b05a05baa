/** A worker's `cost` as policies use it. */
import type { Candidate, PolicyContext } from "../policy.ts";

/** What costs nothing would get everything. */
const LEAST_COST = 0.01;

/** What load there is multiplied by: a worker of cost 2 is as loaded with half of what one of cost 1 has. */
export const weightOf = ({ cost }: Candidate): number => (cost > LEAST_COST ? cost : LEAST_COST);

/** Anyone, in inverse proportion to the costs. */
export function anyone<C extends Candidate>(candidates: readonly C[], context: PolicyContext): C {
  let sum = 0;
  for (const candidate of candidates) sum += 1 / weightOf(candidate);
  let left = context.random() * sum;
  for (const candidate of candidates) if ((left -= 1 / weightOf(candidate)) < 0) return candidate;
  return candidates[candidates.length - 1]!;
}
