/** Runs in the background whose gateway or thread has gone: somebody else says how they ended. */
import { idOf, memberText } from "../../history/json-text.ts";
import type { HistoryStore, ResponseKind, StoredResponse } from "../../history/store.ts";
import { LoggedSteps } from "../interactions/logged.ts";
import { isUnfinished } from "./history.ts";

/** A run that nobody has updated for so long has lost its runner. Runners update theirs every third of it. */
export const LEASE_MS = 30_000;

type Members = Readonly<Record<string, unknown>>;

interface Ending {
  readonly status: "failed" | "cancelled";
  readonly message: string;
}

/** How the object of each kind tells it; undefined: its API looks after its own. */
const DRAWN: Readonly<Record<ResponseKind, ((body: Members, end: Ending) => Members) | undefined>> = {
  response: (body, { status, message }) => ({
    ...body,
    status,
    error: status === "failed" ? { code: "server_error", message } : null,
  }),
  interaction: (body, { status, message }) => ({
    ...body,
    status,
    updated: new Date().toISOString(),
    ...(status === "failed" && { errors: [{ code: "INTERNAL", message }] }),
  }),
  batch: undefined,
};

/** Whether a run has lost its runner. `updatedAt` as of `getState`. */
export const isLost = (updatedAt: number | null): boolean => updatedAt !== null && updatedAt < Date.now() - LEASE_MS;

/**
 * Ends a run that is not over: as failed, or as cancelled where that was asked for, with the items that its log has as its output. Another
 * end that comes first holds.
 */
export async function endLost(
  history: HistoryStore,
  tenant: string,
  id: string,
  message = "The server that worked on it has gone away",
): Promise<void> {
  const row = await history.getResponse(tenant, id);
  if (row === null || !isUnfinished(row.status)) return;
  const draw = DRAWN[row.kind];
  if (draw === undefined) return;
  const status = row.status === "canceling" ? "cancelled" : "failed";
  const output = await loggedOutput(history, row);
  const body = JSON.stringify(draw(JSON.parse(row.body) as Members, { status, message }));
  await history.updateResponse({
    tenant,
    id,
    updatedAt: Date.now(),
    ifStatus: [row.status],
    status,
    result: { body: withOutput(row.kind, body, output), output, itemIds: itemIds(row, output) },
  });
}

/** Member of an object that shows its output. */
const OUTPUT: Readonly<Record<ResponseKind, string>> = { response: "output", interaction: "steps", batch: "" };

/** The object with its output in the place of the one that it had, as the last member. */
function withOutput(kind: ResponseKind, body: string, output: readonly string[]): string {
  const { [OUTPUT[kind]]: _, ...others } = JSON.parse(body) as Members;
  return `${JSON.stringify(others).slice(0, -1)},"${OUTPUT[kind]}":[${output.join(",")}]}`;
}

/** Ids of items; steps have none. */
const itemIds = ({ kind, input }: StoredResponse, output: readonly string[]): string[] =>
  kind !== "response" ? [] : [...new Set([...input, ...output].map(idOf))].filter((id) => id !== "");

const DONE = '{"type":"response.output_item.done"';

/** What the answer had come to. */
async function loggedOutput(history: HistoryStore, { kind, tenant, id }: StoredResponse): Promise<readonly string[]> {
  const items: string[] = [];
  const steps = new LoggedSteps();
  for (let after = -1; ; ) {
    const events = await history.readEvents(tenant, id, after, { maxEvents: 1000, maxBytes: 1 << 20 });
    const last = events?.at(-1);
    if (events === null || last === undefined) return kind === "interaction" ? steps.steps() : items;
    after = last.sequence;
    for (const { json } of events) {
      if (kind === "interaction") steps.add(json);
      else if (json.startsWith(DONE)) items.push(memberText(json, "item") ?? "{}");
    }
  }
}
