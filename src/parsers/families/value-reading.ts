import { look, type Step, skipSpace, until } from "../input.ts";
import type { MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import type { ArgumentValue } from "../values.ts";

/** What ends the value of a parameter. */
export interface ValueEnds {
  readonly markers: MarkerSet;
  /** The first so many of the markers are closers of the value, the rest closers of the call. */
  readonly closers: number;
  /** What must follow a closer that is real; else it is part of the value. */
  readonly next: MarkerSet;
  /** What must follow a closer of the call that stands where the value's should. */
  readonly forcedNext?: MarkerSet;
}

/** Reads a parameter's value and its closer. A call whose text ends in it is left unfinished. */
export function* readValue(p: Parsing, value: ArgumentValue, ends: ValueEnds): Step<"done" | "cut"> {
  const { input, out } = p;
  const push = (text: string) => value.push(p.special.plain(text));
  for (;;) {
    const hit = yield* until(input, ends.markers, push);
    if (hit < 0) {
      value.cut();
      out.leave();
      return "cut";
    }
    const marker = ends.markers.markers[hit]!;
    const isForced = hit >= ends.closers;
    input.record(marker);
    yield* skipSpace(input);
    const next = yield* look(input, isForced ? (ends.forcedNext ?? ends.next) : ends.next);
    const atEnd = input.ended && input.at >= input.text.length;
    if (next >= 0 || (atEnd && !isForced)) {
      value.end();
      // A call that closes without its last parameter's closer: the closer of the call is read again.
      if (isForced) input.rewind(marker.startsWith("\n") ? 1 : 0);
      else input.forget();
      return "done";
    }
    // The closer is part of the value.
    push(marker);
    input.rewind(marker.length);
  }
}

/** The attributes of a tag, `key="value"`; of a key that stands twice the first. */
export function attributesOf(tag: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [, key, , value] of tag.matchAll(/([\w-]+)\s*=\s*(["'])(.*?)\2/gs)) found[key!] ??= value!;
  return found;
}
