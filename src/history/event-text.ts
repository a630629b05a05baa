import type { StoredEvent } from "./store.ts";

/** Events of a batch as one text. JSON has no bare line ends, so they part the events. */
export function joinEvents(events: readonly string[]): string {
  if (events.some((event) => event.includes("\n"))) throw new TypeError("an event holds a line end");
  return events.join("\n");
}

/** The events behind `after` out of batches in order; ends with the one that reaches `maxBytes` characters. */
export function eventsIn(
  batches: readonly { readonly first: number; readonly text: string }[],
  after: number,
  maxEvents: number,
  maxBytes: number,
): StoredEvent[] {
  const found: StoredEvent[] = [];
  let bytes = 0;
  for (const [at, { first, text }] of batches.entries()) {
    if ((batches[at + 1]?.first ?? Number.POSITIVE_INFINITY) <= after + 1) continue; // none of these is wanted
    for (const [index, json] of text.split("\n").entries()) {
      if (first + index <= after) continue;
      if (found.length >= maxEvents || bytes >= maxBytes) return found;
      found.push({ sequence: first + index, json });
      bytes += json.length;
    }
  }
  return found;
}
