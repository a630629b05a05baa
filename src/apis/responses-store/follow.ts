import { memberText } from "../../history/json-text.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { DONE_FRAME, eventFrame } from "../shared/events.ts";
import { followLog } from "../shared/follow.ts";
import { LOST_RESPONSE, missingEvents, typeOf } from "./logged.ts";

/** Streams the events of a response in the background that have a number above `after`, until it is over. */
export const followResponse = (
  of: { readonly id: string; readonly tenant: string; readonly after: number },
  history: HistoryStore,
  context: ServerContext,
  scope: RequestScope,
  headers: Record<string, string>,
): Response =>
  followLog({ ...of, lost: LOST_RESPONSE, frame, ending, close: DONE_FRAME }, history, context, scope, headers);

const frame = (json: string): string => eventFrame(typeOf(json), json);

/** As a writer of responses tells it. OpenAI has no event for a response that was cancelled: its stream just ends. */
function ending({ status, body }: StoredResponse, next: number, last: string | undefined): string[] {
  const events = missingEvents(body, last);
  if (status === "failed") {
    const error = memberText(body, "error") ?? "{}";
    const [code, message] = ["code", "message"].map((name) => memberText(error, name) ?? "null");
    events.push(["error", `"code":${code},"message":${message},"param":null,`]);
  }
  if (status !== "cancelled") events.push([`response.${status}`, `"response":${body},`]);
  return events.map(([type, members], i) => `{"type":"${type}",${members}"sequence_number":${next + i}}`);
}
