/**
 * The store in PostgreSQL (tested with 15). A write is acknowledged after its commit; how durable that is, the server's
 * `synchronous_commit` says. Each serving thread has connections of its own.
 */
import { HistoryConflictError, HistorySetupError, HistoryUnavailableError, UnknownCursorError } from "./errors.ts";
import { storeOf } from "./host.ts";
import { namesOf, type SchemaSetting } from "./schema.ts";
import { migrate } from "./sql/migrations.ts";
import { POSTGRES, type Row, type Work } from "./sql/statement.ts";
import { isSingle, worksOf } from "./sql/works.ts";
import type { HistoryStore } from "./store.ts";

export interface PostgresSetting {
  readonly url: string;
  readonly schema?: SchemaSetting;
  /** Connections of this thread. */
  readonly maxConnections: number;
  readonly connectTimeoutSecs: number;
}

/** Key of the advisory lock under which one process at a time changes the tables: "collie" in letters' numbers. */
const MIGRATION_LOCK = 0x636f6c6c6965;

type Querying = Pick<Bun.SQL, "unsafe">;

/** Connects, and brings the tables to this version. Throws `HistorySetupError` or `HistoryUnavailableError`. */
export async function openPostgres(setting: PostgresSetting): Promise<HistoryStore> {
  const names = namesOf(setting.schema ?? {});
  const sql = new Bun.SQL(setting.url, {
    max: setting.maxConnections,
    connectionTimeout: setting.connectTimeoutSecs,
    idleTimeout: 300,
  });
  try {
    await sql.begin(async (transaction) => {
      await transaction.unsafe(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
      await run(transaction, migrate(POSTGRES, names));
    });
  } catch (error) {
    await sql.close({ timeout: 0 });
    if (error instanceof HistorySetupError) throw error;
    if (isRefusal(error)) throw new HistorySetupError(`PostgreSQL refused the history: ${error.message}`);
    throw new HistoryUnavailableError(error);
  }
  const works = worksOf(POSTGRES, names);
  return storeOf(
    async (method, args) => {
      const start = works[method] as (...given: readonly unknown[]) => Work<unknown>;
      try {
        if (isSingle(method, args)) return await run(sql, start(...args));
        return await sql.begin((transaction) => run(transaction, start(...args)));
      } catch (error) {
        if (error instanceof HistoryConflictError || error instanceof UnknownCursorError) throw error;
        throw new HistoryUnavailableError(error);
      }
    },
    () => sql.close({ timeout: 5 }),
  );
}

async function run<T>(sql: Querying, work: Work<T>): Promise<T> {
  let step = work.next();
  while (!step.done) {
    const { sql: text, params } = step.value;
    step = work.next((await sql.unsafe(text, [...params])) as readonly Row[]);
  }
  return step.value;
}

/** An answer of the server, not a failed connection, and not one that gets better by itself (class 53, 57: overload, shutdown). */
function isRefusal(error: unknown): error is Error {
  const { code, errno } = error as { readonly code?: unknown; readonly errno?: unknown };
  return error instanceof Error && code === "ERR_POSTGRES_SERVER_ERROR" && !/^5[37]/.test(String(errno));
}
