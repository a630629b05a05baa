/**
 * The store in a file. WAL with synchronous=FULL: a commit returns once its part of the write-ahead log is on the disk, so what was
 * acknowledged survives both a kill and a power loss. Calls hold the thread: it runs in one of its own (`host.ts`), where the
 * writes that wait for each other's turn share one commit, and so one sync of the disk.
 */
import { Database, SQLiteError, type SQLQueryBindings } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import { HistoryConflictError, HistorySetupError, HistoryUnavailableError, UnknownCursorError } from "./errors.ts";
import type { Call, Outcome, SyncHistory } from "./host.ts";
import { namesOf, type SchemaSetting } from "./schema.ts";
import { migrate } from "./sql/migrations.ts";
import { type Row, SQLITE, type Work } from "./sql/statement.ts";
import { READS, worksOf } from "./sql/works.ts";

/** How long a write waits for that of another process. */
const BUSY_MS = 10_000;

/** Opens the file, and makes it if it is not there. Throws `HistorySetupError`. */
export function openSqlite(path: string, schema: SchemaSetting = {}): SyncHistory {
  if (schema.owner !== undefined) throw new HistorySetupError("a schema's owner has no meaning for SQLite");
  const names = namesOf(schema);
  let database: Database;
  try {
    // its companions get the same rights
    closeSync(openSync(path, "a", 0o600));
    database = new Database(path, { create: true, strict: true });
    database.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = FULL");
    // where fsync does not reach the disk (macOS)
    database.run("PRAGMA fullfsync = ON");
    database.run("PRAGMA checkpoint_fullfsync = ON");
    database.run("BEGIN IMMEDIATE");
    run(database, migrate(SQLITE, names));
    database.run("COMMIT");
  } catch (error) {
    if (error instanceof HistorySetupError) throw error;
    throw new HistorySetupError(
      `cannot open the history in ${path}: ${error instanceof Error ? error.message : error}`,
    );
  }
  const works = worksOf(SQLITE, names);

  function outcomeOf({ method, args }: Call): Outcome {
    try {
      const work = works[method] as (...given: readonly unknown[]) => Work<unknown>;
      return { value: run(database, work(...args)) };
    } catch (error) {
      if (error instanceof HistoryConflictError || error instanceof UnknownCursorError) return { error };
      throw error;
    }
  }

  function transaction(calls: readonly Call[]): Outcome[] {
    database.run("BEGIN IMMEDIATE");
    try {
      const outcomes = calls.map(outcomeOf);
      database.run("COMMIT");
      return outcomes;
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      throw error;
    }
  }

  return {
    execute(calls) {
      const writes = calls.some(({ method }) => !READS.has(method));
      try {
        return writes ? transaction(calls) : calls.map(outcomeOf);
      } catch (error) {
        // one of them ended it for all: each for itself
        if (calls.length > 1 && !isBusy(error)) return calls.flatMap((call) => this.execute([call]));
        return calls.map(() => ({ error: new HistoryUnavailableError(error) }));
      }
    },
    close() {
      database.close(false);
    },
  };
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true;
}

function run<T>(database: Database, work: Work<T>): T {
  let step = work.next();
  while (!step.done) {
    const { sql, params } = step.value;
    step = work.next(database.query(numbered(sql)).all(...(params as SQLQueryBindings[])) as Row[]);
  }
  return step.value;
}

const numberedTexts = new Map<string, string>();

/** SQLite writes `?1` for what is `$1` elsewhere. */
function numbered(sql: string): string {
  let text = numberedTexts.get(sql);
  if (text === undefined) {
    text = sql.replaceAll(/\$(\d+)/g, "?$1");
    numberedTexts.set(sql, text);
  }
  return text;
}
