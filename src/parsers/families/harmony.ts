import { look, type Step, skipSpace, until, untilCloser } from "../input.ts";
import { jsonValue, OPEN_LIST, OPEN_OBJECT, parseJson } from "../json.ts";
import type { Parsing } from "../parsing.ts";
import { type Channel, kindOfHeader, textOfHeader } from "./harmony-header.ts";

const START = "<|start|>";
const CHANNEL = "<|channel|>";
const MESSAGE = "<|message|>";
const CONSTRAIN = "<|constrain|>";
const END = "<|end|>";
const CALL = "<|call|>";
const RETURN = "<|return|>";

/** What opens a message of reasoning. */
export const HARMONY_ANALYSIS = `${CHANNEL}analysis${MESSAGE}`;
export const HARMONY_MARKERS = [START, CHANNEL, MESSAGE, CONSTRAIN, END, CALL, RETURN];
/** A header that is longer is a body whose marker is missing. */
const MAX_HEADER = 1024;

/** Messages of gpt-oss: a header that names channel and recipient, and a body. Headers are read leniently: no text is lost. */
export function* harmony(p: Parsing): Step<void> {
  const { input, out } = p;
  const bodyEnd = p.set(START, CHANNEL, END, CALL, RETURN);
  const headerEnd = p.set(MESSAGE, END, CALL, RETURN, START, CHANNEL);
  const nextChannel = headerEnd.markers.length - 1;
  // The prompt ends behind the role: a header may go on there.
  const recipient = p.set(" to=", "to=");
  let hit = -1;
  const isHeader = !p.options.startsInReasoning && (yield* look(input, recipient)) >= 0;
  if (isHeader) hit = yield* message("");
  else hit = yield* until(input, bodyEnd, p.options.startsInReasoning ? p.reasoning : p.text);
  while (hit >= 0) {
    const marker = bodyEnd.markers[hit]!;
    if (hit <= 1) hit = yield* message(hit === 0 ? "" : marker);
    else hit = yield* until(input, bodyEnd, p.text);
  }

  /** Reads a message from its header on; the marker that ended it, as a number of `bodyEnd`. */
  function* message(begun: string): Step<number> {
    let header = begun;
    let tooLong = false;
    let found = -1;
    // A header is read in pieces, so that one without an end does not hold an answer back.
    const collect = (text: string) => {
      if (tooLong) emitBody(text);
      else {
        header += text;
        if (header.length > MAX_HEADER) {
          const rest = header.slice(MAX_HEADER);
          tooLong = true;
          channel = kindOfHeader(plain(header.slice(0, MAX_HEADER)), p.tools);
          emitBody(textOfHeader(plain(header.slice(0, MAX_HEADER)), false));
          emitBody(rest);
        }
      }
    };
    let channel: Channel = { kind: "text" };
    const emitBody = (text: string) => (channel.kind === "reasoning" ? p.reasoning(text) : p.text(text));
    let hasChannel = begun !== "";
    for (;;) {
      found = yield* until(input, headerEnd, collect);
      // Behind the role the channel is part of the header; behind another channel it begins the next message.
      if (found !== nextChannel || hasChannel || tooLong) break;
      hasChannel = true;
      collect(headerEnd.markers[found]!);
    }
    if (found === 0) {
      if (!tooLong) channel = kindOfHeader(plain(header), p.tools);
      return yield* body(channel);
    }
    if (!tooLong) {
      channel = kindOfHeader(plain(header), p.tools);
      const text = textOfHeader(plain(header), found < 0);
      if (channel.kind === "call" && p.options.parseTools && parseJson(text) !== undefined) {
        p.start(channel.tool);
        p.arguments(text);
        out.end();
      } else emitBody(text);
    }
    return found < 0 ? -1 : bodyEnd.markers.indexOf(headerEnd.markers[found]!);
  }

  function plain(header: string): string {
    return p.special.plain(header);
  }

  function* body(channel: Channel): Step<number> {
    if (channel.kind === "reasoning") return yield* until(input, bodyEnd, p.reasoning);
    if (channel.kind !== "call" || !p.options.parseTools) return yield* until(input, bodyEnd, p.text);
    p.start(channel.tool);
    const c = yield* skipSpace(input);
    if (c === OPEN_OBJECT || c === OPEN_LIST) {
      const outcome = yield* jsonValue(input, p.arguments);
      if (outcome === "done") out.end();
      else out.leave();
      return yield* until(input, bodyEnd, p.text);
    }
    let written = false;
    const hit = yield* untilCloser(input, bodyEnd, (text) => {
      written = true;
      p.arguments(text);
    });
    if (hit < 0) out.leave();
    else {
      if (!written) p.arguments("{}");
      out.end();
    }
    return hit;
  }
}
