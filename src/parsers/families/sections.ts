import { type ArgumentsKind, argumentsKind, writtenArguments } from "../call-arguments.ts";
import { look, peek, readWhile, type Step, skipSpace, take, until } from "../input.ts";
import { heldJson, jsonValue, OPEN_OBJECT } from "../json.ts";
import { CODE_START } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { isCallId, kimiName, takeName } from "./kimi-names.ts";

/** Calls in a section of special tokens, each with a head and JSON arguments: DeepSeek V3 and Kimi K2. */
export interface SectionFamily {
  readonly section: readonly string[];
  readonly sectionEnd: readonly string[];
  readonly call: string;
  readonly callEnd: string;
  /** Between the head of a call and its arguments. */
  readonly separator: string;
  readonly kind: "deepseek" | "kimi";
}

const OPEN_TAG = 60;
const NEWLINE = 10;
const BACKTICK = 96;
const MAX_HEAD = 256;
const JSON_START = /[[{"\-\dtfn]/;

const isHead = (c: number): boolean => c !== OPEN_TAG && c !== CODE_START && c !== NEWLINE;

/** A whole call; none, so that what was read is text; or one that broke. */
type CallEnd = "done" | "none" | "broken";

/** The program of such a family. */
export function sections(family: SectionFamily): (p: Parsing) => Step<void> {
  return function* run(p) {
    const { input, out } = p;
    const openers = [...family.section, family.call];
    const outside = p.set(...openers);
    const behindCall = p.set(...openers, ...family.sectionEnd, family.callEnd);
    const callStart = p.set(family.call);
    const callEnd = p.set(family.callEnd);
    const ends = p.set(...family.sectionEnd, family.callEnd);
    const separator = p.set(family.separator);
    const fenceStart = p.set("```json", "```");
    const fenceEnd = p.set("```");
    let isOpen = false;
    for (;;) {
      const hit: number = yield* until(input, isOpen ? behindCall : outside, p.text);
      if (hit < 0) return;
      if (hit >= openers.length) {
        isOpen = hit === behindCall.markers.length - 1;
        continue;
      }
      input.record(outside.markers[hit]!);
      if (hit < family.section.length) {
        yield* skipSpace(input);
        if ((yield* take(input, callStart)) < 0) {
          p.giveBack();
          continue;
        }
      }
      isOpen = yield* callsOfSection();
    }

    /** Reads calls, the opener of the first being read; true: the section may still be open. */
    function* callsOfSection(): Step<boolean> {
      for (let any = false; ; any = true) {
        const end = yield* call();
        if (end !== "done") return any || end === "broken";
        input.record();
        yield* skipSpace(input);
        if ((yield* take(input, callStart)) >= 0) continue;
        p.giveBack();
        const isClosed = yield* p.skipMarkers(ends);
        // Text between closers and a further section is not expected; the section's opener is found again.
        return !isClosed;
      }
    }

    /** Reads one call behind its opener. */
    function* call(): Step<CallEnd> {
      const head = yield* readWhile(input, isHead, MAX_HEAD);
      if (head === undefined || (yield* take(input, separator)) < 0) {
        return none();
      }
      let c = yield* skipSpace(input);
      if (family.kind === "kimi") {
        const id = p.special.plain(head).trim();
        const name = kimiName(id, p.tools);
        if (!p.tools.has(name) && isCallId(id)) return yield* namedInside(id);
        return name === "" ? none() : yield* callArguments(name, id, c);
      }
      let name = head.trim();
      if (name === "") return none();
      if (name === "function" && c !== OPEN_OBJECT) {
        const line = yield* readWhile(input, (d) => isHead(d) && d !== BACKTICK, MAX_HEAD);
        if (line === undefined || line.trim() === "") return none();
        name = line.trim();
        c = yield* skipSpace(input);
      }
      yield* take(input, fenceStart);
      c = yield* skipSpace(input);
      return yield* callArguments(name, undefined, c);
    }

    function none(): "none" {
      p.giveBack();
      return "none";
    }

    /** Arguments and the closer of the call. What can't be arguments makes it none, in Kimi's format; DeepSeek's are wrapped. */
    function* callArguments(name: string, id: string | undefined, first: number): Step<CallEnd> {
      const isJson = JSON_START.test(String.fromCharCode(first));
      let kind: ArgumentsKind = "object";
      if (!isJson) kind = (yield* look(input, callEnd)) >= 0 ? "none" : "other";
      else if (family.kind === "kimi") kind = yield* argumentsKind(input);
      if (kind === "other") return none();
      p.start(name, id);
      const isWrapped = family.kind === "deepseek" && isJson && first !== OPEN_OBJECT;
      if (isWrapped) out.arguments('{"value": ');
      if (kind === "none") out.arguments("{}");
      else if (
        kind === "cut" ||
        (yield* (kind === "written" ? writtenArguments : jsonValue)(input, p.arguments)) !== "done"
      ) {
        out.leave();
        return "broken";
      }
      if (isWrapped) out.arguments("}");
      out.end();
      input.record();
      yield* skipSpace(input);
      if (family.kind === "deepseek") {
        yield* take(input, fenceEnd);
        yield* skipSpace(input);
      }
      yield* endOfCall();
      return "done";
    }

    /** The closer of a call, if it is there. */
    function* endOfCall(): Step<void> {
      if ((yield* take(input, callEnd)) >= 0) input.forget();
      else p.giveBack();
    }

    /** The head is a random id: the name stands inside the arguments. */
    function* namedInside(id: string): Step<CallEnd> {
      const raw = (yield* peek(input)) === OPEN_OBJECT ? yield* heldJson(input) : undefined;
      const found = raw === undefined ? undefined : takeName(raw);
      if (found === undefined) return none();
      p.start(found.name, id);
      out.arguments(found.rest);
      out.end();
      input.record();
      yield* skipSpace(input);
      yield* endOfCall();
      return "done";
    }
  };
}
