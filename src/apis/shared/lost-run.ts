/** Runs in the background whose gateway or thread has gone: somebody else says how they ended. */
import { idOf } from "../../history/json-text.ts";
import type { HistoryStore, ResponseKind, StoredResponse } from "../../history/store.ts";
import { isUnfinished } from "./history.ts";

/** A run that nobody has updated for so long has lost its runner. Runners update theirs every third of it. */
export const LEASE_MS = 30_000;

type Members = Readonly<Record<string, unknown>>;

export interface LostEnd {
  readonly status: "failed" | "cancelled";
  readonly message: string;
}

/** Reads a log, event by event. */
export interface LoggedOutput {
  /** JSON text of an event, in their order. */
  add(json: string): void;
  /** What the answer had come to: JSON texts of items or steps. */
  output(): readonly string[];
}

/** How an API tells of its runs that were lost. */
export interface LostKind {
  readonly kind: ResponseKind;
  readonly logged: () => LoggedOutput;
  /** The object with its end, but for its output. */
  readonly draw: (body: Members, end: LostEnd) => Members;
  /** Member of the object that shows its output. */
  readonly member: string;
  /** Whether what is in it has ids. */
  readonly hasIds: boolean;
}

/** Whether a run has lost its runner. `updatedAt` as of `getState`. */
export const isLost = (updatedAt: number | null): boolean => updatedAt !== null && updatedAt < Date.now() - LEASE_MS;

/**
 * Ends a run that is not over: as failed, or as cancelled where that was asked for, with what its log has as its output. Another end that
 * comes first holds.
 */
export async function endLost(
  history: HistoryStore,
  tenant: string,
  id: string,
  kind: LostKind,
  message = "The server that worked on it has gone away, or could not reach the store of responses",
): Promise<void> {
  const row = await history.getResponse(tenant, id);
  if (row === null || row.kind !== kind.kind || !isUnfinished(row.status)) return;
  const status = row.status === "canceling" ? "cancelled" : "failed";
  const { [kind.member]: _, ...others } = kind.draw(JSON.parse(row.body) as Members, { status, message });
  const head = JSON.stringify(others).slice(0, -1);
  const logged = kind.logged();
  let read = await readLog(history, row, -1, logged);
  for (let ifStatus = row.status; ; ifStatus = status) {
    const output = logged.output();
    const body = `${head},"${kind.member}":[${output.join(",")}]}`;
    const outcome = await history.updateResponse({
      tenant,
      id,
      updatedAt: Date.now(),
      ifStatus: [ifStatus],
      status,
      result: { body, output, itemIds: kind.hasIds ? itemIds(row, output) : [] },
    });
    if (outcome !== "stored") return;
    // a runner that was slow, not gone, may have logged more before the row had its end; now it can't
    const last = await readLog(history, row, read, logged);
    if (last === read) return;
    read = last;
  }
}

const itemIds = ({ input }: StoredResponse, output: readonly string[]): string[] =>
  [...new Set([...input, ...output].map(idOf))].filter((id) => id !== "");

/** Reads what comes behind `after`, and gives the number of the last event. */
async function readLog(
  history: HistoryStore,
  { tenant, id }: StoredResponse,
  after: number,
  into: LoggedOutput,
): Promise<number> {
  for (let read = after; ; ) {
    const events = await history.readEvents(tenant, id, read, { maxEvents: 1000, maxBytes: 1 << 20 });
    const last = events?.at(-1);
    if (!events || last === undefined) return read;
    for (const { json } of events) into.add(json);
    read = last.sequence;
  }
}
