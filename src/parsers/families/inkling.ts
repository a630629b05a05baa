import { callObject } from "../calls.ts";
import { type Step, skipSpace, until } from "../input.ts";
import { jsonValue, OPEN_OBJECT } from "../json.ts";
import type { Parsing } from "../parsing.ts";

const MESSAGE = "<|message_model|>";
const TEXT = "<|content_text|>";
const THINKING = "<|content_thinking|>";
const CALL = "<|content_invoke_tool_json|>";
const TEXT_CALL = "<|content_invoke_tool_text|>";
const END_MESSAGE = "<|end_message|>";
const END = "<|content_model_end_sampling|>";

export const INKLING_MARKERS = [MESSAGE, TEXT, THINKING, CALL, TEXT_CALL, END_MESSAGE, END];

/** What a frame holds: words between the begin of a message and one of these are its head. */
const KINDS: readonly string[] = [TEXT, THINKING, CALL, TEXT_CALL];

const MAX_NAME = 256;

const SHAPE = { args: ["args", "arguments", "parameters"] };
const ignore = (): void => {};

/**
 * Messages in typed frames. A call of a tool that was not declared is dropped where others were, as are calls in the text form; where no
 * tool was declared, all calls are told.
 */
export function* inkling(p: Parsing): Step<void> {
  const { input } = p;
  const markers = p.set(...INKLING_MARKERS);
  const { parseTools, startsInReasoning } = p.options;
  let emit = startsInReasoning ? p.reasoning : p.text;
  let name = "";
  let isHead = false;
  const head = (text: string): void => {
    name += text;
    if (isHead && name.length <= MAX_NAME) return;
    isHead = false;
    p.text(name);
    name = "";
  };
  for (;;) {
    const hit = yield* until(input, markers, emit);
    const marker = INKLING_MARKERS[hit];
    // Words of a head that no kind of content follows are text.
    if (hit < 0 || !KINDS.includes(marker!)) p.text(name);
    if (hit < 0) return;
    if (marker === MESSAGE) {
      name = "";
      isHead = true;
      emit = head;
      continue;
    }
    const words = name;
    name = "";
    if (marker === THINKING) emit = p.reasoning;
    else if (marker === CALL || marker === TEXT_CALL) {
      if (!parseTools) {
        emit = p.text;
        p.text(words + markers.markers[hit]);
      } else {
        emit = marker === CALL ? yield* call(words, markers.markers[hit]!) : ignore;
      }
    } else emit = p.text;
  }

  /** Reads the call of a frame; gives where the rest of the frame goes to. */
  function* call(head: string, opener: string): Step<(text: string) => void> {
    const tool = p.special.plain(head).trim();
    input.record(head + opener);
    const c = yield* skipSpace(input);
    if (c === OPEN_OBJECT && tool !== "" && !p.tools.isEmpty && !p.tools.has(tool)) {
      input.forget();
      yield* jsonValue(input, ignore);
      return p.text;
    }
    if (c === OPEN_OBJECT) {
      const outcome = yield* callObject(p, SHAPE, []);
      if (outcome === "call" || outcome === "broken" || !input.recording) return p.text;
    }
    p.giveBack();
    return p.text;
  }
}
