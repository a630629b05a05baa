import { type Step, skipSpace, take, until } from "../input.ts";
import { jsonValue, OPEN_OBJECT } from "../json.ts";
import type { MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";

const tag = (name: string): string => `<|plamo:${name}:plamo|>`;
const SECTION = tag("begin_tool_requests");
const SECTION_END = tag("end_tool_requests");
const CALL = tag("begin_tool_request");
const CALL_END = tag("end_tool_request");
const NAME = tag("begin_tool_name");
const NAME_END = tag("end_tool_name");
const ARGUMENTS = tag("begin_tool_arguments");
const ARGUMENTS_END = tag("end_tool_arguments");
/** What may stand between the opener of arguments and their JSON: the grammar and the begin of a message. */
const CONSTRAINT = ["<|plamo:constrain|>json<|plamo:msg|>", "<|plamo:msg|>"];
const END = "<|plamo:tag|>";
const MAX_NAME = 256;

/** Tags are spelled by several tokens: only these are single ones. */
export const PLAMO_MARKERS = [
  "<|plamo:constrain|>",
  "<|plamo:msg|>",
  END,
  "<|plamo:begin_",
  "<|plamo:end_",
  ":plamo|>",
];

/** Calls of PLaMo 3: a section, and in each call its name and its arguments as JSON, all between tags. */
export function* plamo(p: Parsing): Step<void> {
  const { input, out } = p;
  const outside = p.set(SECTION, END);
  const behindCall = p.set(SECTION, END, CALL, SECTION_END, CALL_END, ARGUMENTS_END);
  const callStart = p.set(CALL);
  const nameStart = p.set(NAME);
  const nameEnd = p.set(NAME_END);
  const argumentsStart = p.set(ARGUMENTS);
  const constraint = p.set(...CONSTRAINT);
  const ends = p.set(ARGUMENTS_END, CALL_END);
  const tagStart = p.set("<|plamo:", "<|plamo:begin_", "<|plamo:end_");
  let isOpen = false;
  for (;;) {
    const set: MarkerSet = isOpen ? behindCall : outside;
    const hit = yield* until(input, set, p.text);
    if (hit < 0) return;
    if (hit === 1 || hit > 2) {
      // Closers, and what ends the answer.
      isOpen &&= hit > 3;
      out.dropSpace();
      continue;
    }
    input.record(set.markers[hit]!);
    if (hit === 0) {
      yield* skipSpace(input);
      if ((yield* take(input, callStart)) < 0) {
        p.giveBack();
        continue;
      }
    }
    isOpen = (yield* call()) || isOpen;
  }

  /** Reads a call behind its opener; false: it is none, and what was read is text. */
  function* call(): Step<boolean> {
    const name = yield* callName();
    yield* skipSpace(input);
    if (name === "" || (yield* take(input, argumentsStart)) < 0) {
      p.giveBack();
      return false;
    }
    yield* take(input, constraint);
    const c = yield* skipSpace(input);
    p.start(name);
    if (c === OPEN_OBJECT) {
      if ((yield* jsonValue(input, p.arguments)) !== "done") {
        out.leave();
        return true;
      }
    } else if ((yield* take(input, ends)) >= 0) out.arguments("{}");
    else {
      out.leave();
      return true;
    }
    out.end();
    yield* p.skipMarkers(ends);
    return true;
  }

  /** Reads the name between its tags; "" where there is none. */
  function* callName(): Step<string> {
    yield* skipSpace(input);
    if ((yield* take(input, nameStart)) < 0) return "";
    let name = "";
    // A name holds no tag: the next one must be its closer.
    const hit = yield* until(input, tagStart, (text) => {
      if (name.length <= MAX_NAME) name += text;
    });
    if (hit < 0) return "";
    input.at -= tagStart.markers[hit]!.length;
    return (yield* take(input, nameEnd)) >= 0 && name.length <= MAX_NAME ? name.trim() : "";
  }
}
