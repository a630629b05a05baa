import { HistoryConflictError } from "../errors.ts";
import { eventsIn, joinEvents } from "../event-text.ts";
import { type StoredEvent, UNFINISHED_STATUSES } from "../store.ts";
import type { Work } from "./statement.ts";
import type { Tables } from "./tables.ts";

/** Logs of events: a row per batch. */
export function eventWork({ dialect, at, columns }: Tables) {
  const { int } = dialect;
  const responses = at("responses");
  const events = at("response_events");
  const column = (name: string): string => columns("response_events", name);
  const response = `SELECT 1 AS found FROM ${responses} WHERE ${columns("responses", "tenant")} = $1 AND ${columns("responses", "id")} = $2`;
  const here = `${column("tenant")} = $1 AND ${column("response_id")} = $2`;

  const unfinished = `${response} AND ${columns("responses", "status")} IN (${UNFINISHED_STATUSES.map((status) => `'${status}'`).join(", ")})`;

  // the lock waits for who ends the response at this moment, and then sees its new status
  const append = `WITH open_response AS (${unfinished}${dialect.lock})
    INSERT INTO ${events} (${columns("response_events", "tenant response_id first_sequence last_sequence events")})
    SELECT $1, $2, ${int("$3")}, ${int("$4")}, $5 FROM open_response WHERE ${int("$3")} = coalesce(
      (SELECT ${column("last_sequence")} + 1 FROM ${events} WHERE ${here} ORDER BY ${column("first_sequence")} DESC LIMIT 1), 0)
    ON CONFLICT DO NOTHING RETURNING 1 AS done`;
  const read = `SELECT first, last, events FROM (
      SELECT first, last, events, sum(length(events)) OVER (ORDER BY first) - length(events) AS before FROM (
        SELECT ${column("first_sequence")} AS first, ${column("last_sequence")} AS last, ${column("events")} AS events FROM ${events}
        WHERE ${here} AND ${column("last_sequence")} > ${int("$3")} ORDER BY first LIMIT $4) AS next_rows) AS sums
    WHERE before < ${int("$5")} ORDER BY first`;

  function* appendEvents(tenant: string, id: string, first: number, added: readonly string[]): Work<boolean> {
    if (added.length > 0) {
      const params = [tenant, id, first, first + added.length - 1, joinEvents(added)];
      const done = yield { sql: append, params };
      if (done.length > 0) return true;
    }
    const [found] = yield { sql: unfinished, params: [tenant, id] };
    if (found !== undefined && added.length > 0)
      throw new HistoryConflictError(`the log of '${id}' does not end just before event ${first}`);
    return found !== undefined;
  }

  function* readEvents(
    tenant: string,
    id: string,
    after: number,
    { maxEvents, maxBytes }: { readonly maxEvents: number; readonly maxBytes: number },
  ): Work<readonly StoredEvent[] | null> {
    const rows = yield { sql: read, params: [tenant, id, after, maxEvents, maxBytes] };
    if (rows.length === 0) {
      const [found] = yield { sql: response, params: [tenant, id] };
      return found === undefined ? null : [];
    }
    return eventsIn(
      rows.map((row) => ({ first: Number(row["first"]), text: row["events"] as string })),
      after,
      maxEvents,
      maxBytes,
    );
  }

  return { appendEvents, readEvents };
}
