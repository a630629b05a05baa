/** What reasoning between markers becomes, worked out from the whole text: the slow way, to compare the parsers with. */
import type { ReasoningFamily } from "../../../src/parsers/reasoning/index.ts";

/** The first of these markers from `from` on; at one place the longest. */
function first(text: string, from: number, markers: readonly string[]): { at: number; marker: string } | undefined {
  let found: { at: number; marker: string } | undefined;
  for (const marker of markers) {
    const at = text.indexOf(marker, from);
    if (at < 0 || (found !== undefined && at > found.at)) continue;
    if (found === undefined || at < found.at || marker.length > found.marker.length) found = { at, marker };
  }
  return found;
}

/** Content and reasoning of an answer that begins in text and is read without a parser of calls. */
export function takeApart(family: ReasoningFamily, text: string): { content: string; reasoning: string } {
  const { open, close, drop = [], textClosers = [], endedBy = [], onlyAtStart = false } = family;
  let content = "";
  let reasoning = "";
  let at = 0;
  let isInside = false;
  let isStart = true;
  // A closer before all text closes nothing.
  const begin = /^[ \n\r\t]*/.exec(text)![0].length;
  const stray = first(text, begin, close);
  if (stray?.at === begin) at = begin + stray.marker.length;
  for (;;) {
    if (!isInside) {
      const opens = !onlyAtStart || isStart ? open : [];
      const hit = first(text, at, [...opens, ...drop, ...(isStart || !onlyAtStart ? textClosers : [])]);
      const said = text.slice(at, hit?.at);
      content += said;
      if (hit === undefined) return { content, reasoning };
      if (said.trim() !== "") isStart = false;
      at = hit.at + hit.marker.length;
      if (!open.includes(hit.marker)) continue;
      if (onlyAtStart && !isStart) content += hit.marker;
      else isInside = true;
      continue;
    }
    const hit = first(text, at, [...close, ...textClosers, ...endedBy.map(({ marker }) => marker)]);
    reasoning += text.slice(at, hit?.at);
    if (hit === undefined) return { content, reasoning };
    at = hit.at + hit.marker.length;
    isStart = false;
    const ender = endedBy.find(({ marker }) => marker === hit.marker);
    if (ender === undefined || close.includes(hit.marker)) {
      isInside = false;
      continue;
    }
    const behind = text.slice(at).trimStart();
    const isReal = ender.next === undefined || behind === "" || ender.next.some((next) => behind.startsWith(next));
    const kept = text.slice(hit.at, ender.next === undefined ? at : text.length - behind.length);
    if (ender.next !== undefined) at = text.length - behind.length;
    if (isReal) isInside = false;
    if (!isReal) reasoning += kept;
    else if (ender.drop !== true) content += kept;
  }
}
