import { endsInMarker, look, readWhile, type Step, skipSpace, TOO_LONG, take, until, untilCloser } from "../input.ts";
import { escapeJson } from "../json.ts";
import { CODE_START } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { ArgumentValue } from "../values.ts";
import { readValue } from "./value-reading.ts";

/** Calls as a name and pairs of a key tag and a value tag: GLM and those after it. Each marker in all its spellings. */
export interface KeyedFamily {
  readonly open: readonly string[];
  readonly close: readonly string[];
  readonly key: readonly (readonly [open: string, close: string])[];
  /** An empty opener: the value begins where its key ends. */
  readonly value: readonly (readonly [open: string, close: string])[];
  /** Around all calls. */
  readonly section?: readonly (readonly [open: string, close: string])[];
  /** Behind the name. */
  readonly separator?: readonly string[];
}

const OPEN_TAG = 60;
const MAX_NAME = 256;
const MAX_KEY = 256;
const isNameCharacter = (c: number): boolean => c > 32 && c !== OPEN_TAG && c !== CODE_START;

/** Every marker of such a family. */
export const keyedMarkers = ({ open, close, key, value, section = [], separator = [] }: KeyedFamily): string[] => [
  ...new Set([...open, ...close, ...key.flat(), ...value.flat(), ...section.flat(), ...separator].filter(Boolean)),
];

/** The program of such a family. */
export function keyed(family: KeyedFamily) {
  const { open, close, key, value, section = [], separator = [] } = family;
  const sectionOpen = section.map(([opener]) => opener);
  const openers = [...sectionOpen, ...open];
  return function* run(p: Parsing): Step<void> {
    const { input, out } = p;
    const outside = p.set(...openers);
    const behindCall = p.set(...openers, ...section.map(([, closer]) => closer), ...close);
    const call = p.set(...open);
    const inCall = p.set(...key.map(([opener]) => opener), ...close);
    // A key that meets another marker than its closer is none.
    const keyCloser = key.map(([, closer]) => closer);
    const keyEnd = p.set(...keyCloser, ...keyedMarkers(family).filter((marker) => !keyCloser.includes(marker)));
    const valueStart = p.set(...value.map(([opener]) => opener).filter(Boolean));
    const valueEnds = { markers: p.set(...value.map(([, closer]) => closer)), closers: value.length, next: inCall };
    const behindName = p.set(...separator);
    let closerIsDue = false;
    for (;;) {
      const hit: number = yield* until(input, closerIsDue ? behindCall : outside, p.text);
      if (hit < 0) return;
      if (hit >= openers.length) {
        // The closer of a call that broke may be followed by that of its section.
        closerIsDue = section.length > 0 && hit >= openers.length + section.length;
        out.dropSpace();
        continue;
      }
      closerIsDue &&= section.length > 0;
      input.record(outside.markers[hit]!);
      if (hit < section.length) {
        yield* skipSpace(input);
        if ((yield* take(input, call)) < 0) {
          p.giveBack();
          continue;
        }
      }
      yield* skipSpace(input);
      const name = yield* readWhile(input, isNameCharacter, MAX_NAME);
      yield* skipSpace(input);
      if (name !== undefined && name !== "" && separator.length > 0 && (yield* take(input, behindName)) >= 0)
        yield* skipSpace(input);
      if (name === undefined || name === "" || (yield* look(input, inCall)) < 0) {
        p.giveBack();
        continue;
      }
      p.start(name);
      closerIsDue = (yield* pairs(name)) || section.length > 0;
    }

    /** Reads a call behind its name; true: it broke. */
    function* pairs(name: string): Step<boolean> {
      for (let begun = false; ; begun = true) {
        input.record();
        yield* skipSpace(input);
        const hit = yield* take(input, inCall);
        if (hit >= key.length) {
          input.forget();
          out.arguments(begun ? "}" : "{}");
          out.end();
          return false;
        }
        const text = hit < 0 ? undefined : yield* keyText();
        if (text === undefined || !text.isWhole || !(yield* beginsValue())) {
          // The begin of a pair that the text ends in belongs to the arguments, anything else is text.
          if (text !== undefined && input.isAtEnd) cutKey(text, begun);
          p.leave();
          return true;
        }
        input.forget();
        const plain = p.special.plain(text.said).trim();
        out.arguments(`${begun ? ", " : "{"}${JSON.stringify(plain)}: `);
        const tool = p.special.plain(name);
        const argument = new ArgumentValue(p.tools.kinds(tool, plain), p.arguments, p.tools.choices(tool, plain));
        if ((yield* readValue(p, argument, valueEnds)) === "cut") return true;
      }
    }

    /** Reads a key and its closer; undefined where it is none, and what ended it stays unread. */
    function* keyText(): Step<{ readonly said: string; readonly isWhole: boolean } | undefined> {
      let said = "";
      const end = yield* untilCloser(
        input,
        keyEnd,
        (piece) => {
          said += piece;
        },
        MAX_KEY,
      );
      if (end >= keyCloser.length) input.at -= keyEnd.markers[end]!.length;
      if (end === TOO_LONG || end >= keyCloser.length) return undefined;
      return { said, isWhole: end >= 0 };
    }

    /** Reads the opener of a value behind a key. Where the text ends in it, all of it is read. */
    function* beginsValue(): Step<boolean> {
      if (valueStart.markers.length === 0) return true;
      yield* skipSpace(input);
      if ((yield* take(input, valueStart)) >= 0) return true;
      if (endsInMarker(input, valueStart)) input.at = input.text.length;
      return false;
    }

    function cutKey({ said, isWhole }: { readonly said: string; readonly isWhole: boolean }, begun: boolean): void {
      const key = escapeJson(p.special.plain(said).trimStart());
      input.forget();
      if (key !== "") out.arguments(`${begun ? ", " : "{"}"${isWhole ? `${key.trimEnd()}"` : key}`);
    }
  };
}
