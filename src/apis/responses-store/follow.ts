import { memberText } from "../../history/json-text.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { DONE_FRAME, eventFrame } from "../shared/events.ts";
import { followLog } from "../shared/follow.ts";

/** Streams the events of a response in the background that have a number above `after`, until it is over. */
export const followResponse = (
  of: { readonly id: string; readonly tenant: string; readonly after: number },
  history: HistoryStore,
  context: ServerContext,
  scope: RequestScope,
  headers: Record<string, string>,
): Response => followLog({ ...of, frame, ending, close: DONE_FRAME }, history, context, scope, headers);

/** `type` comes first in all events of ours. */
const frame = (json: string): string => eventFrame(json.slice(9, json.indexOf('"', 9)), json);

/** As a writer of responses tells it. OpenAI has no event for a response that was cancelled: its stream just ends. */
function ending({ status, body }: StoredResponse, next: number): string[] {
  const last = (number: number): string =>
    `{"type":"response.${status}","response":${body},"sequence_number":${number}}`;
  if (status === "completed" || status === "incomplete") return [last(next)];
  if (status !== "failed") return [];
  const error = memberText(body, "error") ?? "{}";
  const [code, message] = ["code", "message"].map((name) => memberText(error, name) ?? "null");
  return [
    `{"type":"error","code":${code},"message":${message},"param":null,"sequence_number":${next}}`,
    last(next + 1),
  ];
}
