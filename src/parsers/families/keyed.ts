import { look, readWhile, type Step, skipSpace, take, until } from "../input.ts";
import { CODE_START } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { ArgumentValue } from "../values.ts";
import { readValue } from "./value-reading.ts";

/** Calls as a name and pairs of a key tag and a value tag: GLM and those after it. */
export interface KeyedFamily {
  readonly open: string;
  readonly close: string;
  readonly key: readonly [string, string];
  readonly value: readonly [string, string];
}

const OPEN_TAG = 60;
const MAX_NAME = 256;
const isNameCharacter = (c: number): boolean => c > 32 && c !== OPEN_TAG && c !== CODE_START;

/** The program of such a family. */
export function keyed(family: KeyedFamily): (p: Parsing) => Step<void> {
  return function* run(p) {
    const { input, out } = p;
    const outside = p.set(family.open);
    const behindBroken = p.set(family.open, family.close);
    const inCall = p.set(family.key[0], family.close);
    const keyEnd = p.set(family.key[1]);
    const valueStart = p.set(family.value[0]);
    const valueEnds = { markers: p.set(family.value[1]), closers: 1, next: inCall };
    let isBroken = false;
    for (;;) {
      const hit = yield* until(input, isBroken ? behindBroken : outside, p.text);
      if (hit < 0) return;
      isBroken = false;
      if (hit > 0) continue;
      input.record(outside.markers[0]!);
      yield* skipSpace(input);
      const name = yield* readWhile(input, isNameCharacter, MAX_NAME);
      yield* skipSpace(input);
      if (name === undefined || name === "" || (yield* look(input, inCall)) < 0) {
        p.giveBack();
        continue;
      }
      p.start(name);
      isBroken = yield* pairs(name);
    }

    /** Reads a call behind its name; true: it broke. */
    function* pairs(name: string): Step<boolean> {
      for (let begun = false; ; begun = true) {
        input.record();
        yield* skipSpace(input);
        const hit = yield* take(input, inCall);
        if (hit === 1) {
          input.forget();
          out.arguments(begun ? "}" : "{}");
          out.end();
          return false;
        }
        let key = "";
        const end =
          hit < 0
            ? -1
            : yield* until(input, keyEnd, (text) => {
                key += text;
              });
        if (end >= 0) yield* skipSpace(input);
        if (end < 0 || (yield* take(input, valueStart)) < 0) {
          p.leave();
          return true;
        }
        input.forget();
        const plain = p.special.plain(key).trim();
        out.arguments(`${begun ? ", " : "{"}${JSON.stringify(plain)}: `);
        const value = new ArgumentValue(p.tools.kinds(p.special.plain(name), plain), p.arguments);
        if ((yield* readValue(p, value, valueEnds)) === "cut") return true;
      }
    }
  };
}
