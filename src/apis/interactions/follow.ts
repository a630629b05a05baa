import { memberText } from "../../history/json-text.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { DONE_FRAME, eventFrame, eventTexts, ServerSentEvents } from "../shared/events.ts";
import { followLog } from "../shared/follow.ts";
import { type Position, positionOf, replayInteraction } from "./events.ts";
import { LOST_INTERACTION } from "./logged.ts";

/** Streams the events of an interaction in the background that have a number above `after`, until it is over. */
export const followInteraction = (
  of: { readonly id: string; readonly tenant: string; readonly after: number },
  history: HistoryStore,
  context: ServerContext,
  scope: RequestScope,
  headers: Record<string, string>,
): Response =>
  followLog({ ...of, lost: LOST_INTERACTION, frame, ending, close: DONE_FRAME }, history, context, scope, headers);

/** `event_type` comes first in all events of ours. */
const frame = (json: string): string => eventFrame(json.slice(15, json.indexOf('"', 15)), json);

/** What comes behind the last event of the log, which also lacks the end of a step where its server has gone. */
function ending({ body }: StoredResponse, _next: number, last: string | undefined): string[] {
  const texts: string[] = [];
  const after = last === undefined ? undefined : positionOf(JSON.parse(memberText(last, "event_id") ?? '""') as string);
  replayInteraction(
    body,
    after,
    eventTexts((json) => texts.push(json)),
  );
  return texts;
}

/** All frames of an interaction that is over, or those behind an event. */
export function replayedFrames(body: string, after: Position | undefined): string {
  let text = "";
  const write = (frame: string) => {
    text += frame;
  };
  const out = new ServerSentEvents({ write, flush() {}, end() {}, cut() {} });
  replayInteraction(body, after, out);
  out.end();
  return text;
}
