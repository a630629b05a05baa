import { endsInMarker, look, type Step, skipSpace, untilCloser } from "../input.ts";
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

/** Reads a parameter's value and its closer. A call whose text ends in it is left unfinished, without the half of a closer. */
export function* readValue(p: Parsing, value: ArgumentValue, ends: ValueEnds): Step<"done" | "cut"> {
  const { input } = p;
  const push = (text: string) => value.push(p.special.plain(text));
  for (;;) {
    const hit = yield* untilCloser(input, ends.markers, push);
    if (hit < 0) return cut(p, value);
    const marker = ends.markers.markers[hit]!;
    const isForced = hit >= ends.closers;
    input.record(marker);
    yield* skipSpace(input);
    const following = isForced ? (ends.forcedNext ?? ends.next) : ends.next;
    const isReal = (yield* look(input, following)) >= 0;
    const isCut = !isReal && endsInMarker(input, following);
    if (isCut) {
      // Whether the call or its value would have ended there is not known.
      input.forget();
      input.at = input.text.length;
      if (isForced) return cut(p, value);
    }
    if (isReal || isCut) {
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

function cut(p: Parsing, value: ArgumentValue): "cut" {
  value.cut();
  p.out.leave();
  return "cut";
}

/** The attributes of a tag, `key="value"`; of a key that stands twice the first. */
export function attributesOf(tag: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [, key, , value] of tag.matchAll(/([\w-]+)\s*=\s*(["'])(.*?)\2/gs)) found[key!] ??= value!;
  return found;
}
