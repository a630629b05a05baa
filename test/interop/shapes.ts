/** Form of what a probe saw: fields and types without values, so that two engines can be compared. */

/** One record of probe.py. */
export interface ProbeRecord {
  readonly probe: string;
  readonly status: string;
  readonly details?: string;
  readonly response?: unknown;
}

/** Fields that come and go with the engine's state: absent means zero. */
const UNSTEADY = new Set(["cached_tokens"]);

type Shape = string | { readonly [key: string]: Shape } | readonly Shape[];

function mergeShapes(a: Shape | undefined, b: Shape): Shape {
  if (a === undefined || typeof a === "string" || typeof b === "string" || Array.isArray(a) || Array.isArray(b))
    return b;
  const merged: Record<string, Shape> = { ...(a as Record<string, Shape>) };
  for (const [key, shape] of Object.entries(b)) merged[key] = mergeShapes(merged[key], shape);
  return merged;
}

function shapeOf(value: unknown): Shape {
  if (Array.isArray(value)) {
    const items = value.map(shapeOf).reduce<Shape | undefined>(mergeShapes, undefined);
    return items === undefined ? [] : [items];
  }
  if (typeof value !== "object" || value === null) return typeof value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !UNSTEADY.has(key))
      .map(([key, inner]) => [key, shapeOf(inner)]),
  );
}

/** The shape as lines such as `[].chunk.token_ids[]: number`, sorted. */
function lines(shape: Shape, path = ""): string[] {
  if (typeof shape === "string") return [`${path}: ${shape}`];
  if (Array.isArray(shape)) return shape.length === 0 ? [`${path}[]`] : lines(shape[0] as Shape, `${path}[]`);
  return Object.entries(shape)
    .flatMap(([key, inner]) => lines(inner, `${path}.${key}`))
    .sort();
}

function finishes(record: ProbeRecord): string[] {
  if (!Array.isArray(record.response)) return [];
  const seen = (record.response as { complete?: { finish_reason?: string; matched_token_id?: number } }[]).flatMap(
    ({ complete }) => (complete ? [`${complete.finish_reason}${complete.matched_token_id ? " by a token" : ""}`] : []),
  );
  return [...new Set(seen)].sort();
}

/** What of a record differs in form from the real engine's, a line each. */
export function shapeDifferences(
  real: ProbeRecord,
  ours: ProbeRecord,
  mayLack: ReadonlySet<string> = new Set(),
): string[] {
  const found: string[] = [];
  if (real.status !== ours.status)
    found.push(`status: real ${real.status} (${real.details ?? ""}), ours ${ours.status} (${ours.details ?? ""})`);
  const [theirEnds, ourEnds] = [finishes(real).join(), finishes(ours).join()];
  if (theirEnds !== ourEnds) found.push(`ends: real '${theirEnds}', ours '${ourEnds}'`);
  const theirs = lines(shapeOf(real.response ?? []));
  const mine = lines(shapeOf(ours.response ?? []));
  for (const line of theirs) if (!mine.includes(line) && !mayLack.has(line)) found.push(`missing ${line}`);
  for (const line of mine) if (!theirs.includes(line)) found.push(`too much ${line}`);
  return found;
}
