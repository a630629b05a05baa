/** `x-smg-target-worker`: a client names the worker itself, whatever the policy. */
import { TargetWorkerError } from "../../errors.ts";
import type { Candidate, Leg } from "../policy.ts";

const withoutSlash = (url: string): string => (url.endsWith("/") ? url.slice(0, -1) : url);

/**
 * The candidate of this id or URL, or of this number among the candidates. Throws TargetWorkerError where there is none: who names a
 * worker wants no other. Of a request in two parts, a name may be that of the other part's worker: then undefined.
 */
export function targetOf<C extends Candidate>(candidates: readonly C[], target: string, leg: Leg): C | undefined {
  let found = namedIn(candidates, target);
  const number = target.trim();
  if (found === undefined && /^\d{1,6}$/.test(number)) found = candidates[Number(number)];
  if (found === undefined && leg === "regular") throw new TargetWorkerError(number);
  return found;
}

/** The one of this id, else of this URL: of several ranks the first, unless it is `URL@RANK`. */
export function namedIn<C extends Pick<Candidate, "id" | "url">>(
  candidates: readonly C[],
  target: string,
): C | undefined {
  const name = target.trim();
  const url = withoutSlash(name);
  let found: C | undefined;
  for (const candidate of candidates) {
    if (candidate.id === name) return candidate;
    if (withoutSlash(candidate.url) === url || candidate.url.startsWith(`${url}@`)) found ??= candidate;
  }
  return found;
}
