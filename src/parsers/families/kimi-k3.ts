import { readWhile, type Step, skipSpace, take, until } from "../input.ts";
import { escapeJson } from "../json.ts";
import { CODE_START } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { Kind } from "../schema.ts";
import { ArgumentValue } from "../values.ts";
import { attributesOf, readValue, type ValueEnds } from "./value-reading.ts";

export const KIMI_K3_MARKERS = ["<|open|>", "<|close|>", "<|sep|>"];
export const OPEN = "<|open|>";
export const CLOSE = "<|close|>";
export const SEP = "<|sep|>";

const MAX_HEAD = 512;
const OPEN_TAG = 60;

/** Tags of three special tokens: a tools block with calls and their arguments; wrappers around visible text. */
export function* kimiK3(p: Parsing): Step<void> {
  const { input, out } = p;
  const tags = p.set(OPEN, CLOSE);
  const separator = p.set(SEP);
  const valueEnds: ValueEnds = {
    markers: p.set(`${CLOSE}argument${SEP}`),
    closers: 1,
    next: p.set(`${OPEN}argument`, `${CLOSE}call`),
  };
  for (;;) {
    const hit = yield* until(input, tags, p.text);
    if (hit < 0) return;
    input.record(tags.markers[hit]!);
    const head = yield* tagHead();
    const name = head === undefined ? "" : wordOf(head);
    if (hit === 0 && name === "tools") yield* toolsBlock();
    else if (name === "response" || name === "message" || (name === "tools" && out.afterCall)) input.forget();
    else p.giveBack();
  }

  /** The words of a tag up to its end, which is read. */
  function* tagHead(): Step<string | undefined> {
    const head = yield* readWhile(input, (c) => c !== OPEN_TAG && c !== CODE_START, MAX_HEAD);
    return head !== undefined && (yield* take(input, separator)) >= 0 ? head : undefined;
  }

  function* toolsBlock(): Step<void> {
    for (let calls = 0; ; calls++) {
      yield* skipSpace(input);
      const hit = yield* take(input, tags);
      const head = hit < 0 ? undefined : yield* tagHead();
      if (head === undefined) return p.giveBack();
      const word = wordOf(head);
      if (hit === 1 && word === "tools" && calls > 0) return input.forget();
      const { tool, index } = attributesOf(head);
      if (hit === 1 || word !== "call" || tool === undefined || tool === "") return p.giveBack();
      p.start(tool, index === undefined ? undefined : `${tool}:${index}`);
      if (!(yield* callArguments(tool))) {
        p.leave(HALF_TAG);
        return;
      }
      input.record();
    }
  }

  /** Reads a call to its end; false: it broke. */
  function* callArguments(tool: string): Step<boolean> {
    for (let begun = false; ; begun = true) {
      input.record();
      yield* skipSpace(input);
      const hit = yield* take(input, tags);
      const head = hit < 0 ? undefined : yield* tagHead();
      if (head === undefined) {
        const half = input.isAtEnd ? HALF_KEY.exec(p.special.plain(input.seen)) : null;
        if (half !== null) {
          input.forget();
          out.arguments(`${begun ? ", " : "{"}"${escapeJson(half[1]!)}${half[2]}`);
        }
        return false;
      }
      if (hit === 1) {
        if (wordOf(head) !== "call") return false;
        input.forget();
        out.arguments(begun ? "}" : "{}");
        out.end();
        return true;
      }
      const { key = "", type } = attributesOf(head);
      if (key === "") return false;
      input.forget();
      out.arguments(`${begun ? ", " : "{"}${JSON.stringify(key)}: `);
      const kinds = type === undefined ? p.tools.kinds(tool, key) : type === "string" ? Kind.string : 0;
      const value = new ArgumentValue(kinds, p.arguments, p.tools.choices(tool, key));
      if ((yield* readValue(p, value, valueEnds)) === "cut") return true;
    }
  }
}

/** The tag of an argument that the text ended in, from its key on; and one of whose words nothing is to be told. */
const HALF_KEY = /^\s*<\|open\|>\s*argument\s+key="([^"]*)("?)/;
const HALF_TAG = /^\s*(?:<\|(?:open|close)\|>\s*[a-z]{0,8}\s*)?$/;

const wordOf = (head: string): string => /^\s*(\w*)/.exec(head)![1]!;
