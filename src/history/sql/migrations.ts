/** The tables, and how an older or foreign database gets them. Run under a lock, each version in one transaction. */
import { HistorySetupError } from "../errors.ts";
import type { Names, TableName } from "../schema.ts";
import { type Dialect, POSTGRES, type Work } from "./statement.ts";

type Migration = (dialect: Dialect, names: Names) => Work<void>;

/** Version n is the nth. What was released is never changed: a new form is a new version. */
const MIGRATIONS: readonly Migration[] = [createTables];

/** Brings the database to this program's version. Throws `HistorySetupError` where a newer program was at it. */
export function* migrate(dialect: Dialect, names: Names): Work<void> {
  const table = names.table("history_migrations");
  const version = names.column("history_migrations", "version");
  yield { sql: `CREATE TABLE IF NOT EXISTS ${table} (${version} ${dialect.types.int} PRIMARY KEY)`, params: [] };
  const [row] = yield { sql: `SELECT max(${version}) AS version FROM ${table}`, params: [] };
  const done = Number(row?.["version"] ?? 0);
  if (done > MIGRATIONS.length)
    throw new HistorySetupError(
      `the history has version ${done}, made by a newer program; this one knows ${MIGRATIONS.length}`,
    );
  for (const [index, migration] of MIGRATIONS.entries()) {
    if (index < done) continue;
    yield* migration(dialect, names);
    yield { sql: `INSERT INTO ${table} VALUES ($1)`, params: [index + 1] };
  }
}

function* createTables(dialect: Dialect, names: Names): Work<void> {
  const { text, json, time, int } = dialect.types;
  const owned = `${text} NOT NULL DEFAULT ''`;
  // Each: columns with their types, the key, and indexes.
  const tables: readonly [
    TableName,
    Readonly<Record<string, string>>,
    readonly string[],
    readonly (readonly string[])[],
  ][] = [
    [
      "responses",
      {
        id: `${text} NOT NULL`,
        conversation_id: text,
        previous_response_id: text,
        input: json,
        created_at: time,
        safety_identifier: text,
        model: text,
        raw_response: json,
        tenant: owned,
        kind: `${text} NOT NULL DEFAULT 'response'`,
        status: `${text} NOT NULL DEFAULT 'completed'`,
        updated_at: time,
        output_items: json,
      },
      ["tenant", "id"],
      [["created_at"], ["tenant", "kind", "created_at", "id"], ["status", "updated_at"]],
    ],
    [
      "conversations",
      { id: `${text} NOT NULL`, created_at: time, metadata: json, tenant: owned, updated_at: time },
      ["tenant", "id"],
      [["updated_at"]],
    ],
    [
      "conversation_items",
      {
        id: `${text} NOT NULL`,
        response_id: text,
        item_type: `${text} NOT NULL`,
        role: text,
        content: json,
        status: text,
        created_at: time,
        tenant: owned,
      },
      ["tenant", "id"],
      [],
    ],
    [
      "conversation_item_links",
      { conversation_id: `${text} NOT NULL`, item_id: `${text} NOT NULL`, added_at: time, tenant: owned },
      ["tenant", "conversation_id", "item_id"],
      [
        ["tenant", "conversation_id", "added_at", "item_id"],
        ["tenant", "item_id"],
      ],
    ],
    [
      "response_items",
      { tenant: owned, item_id: `${text} NOT NULL`, response_id: `${text} NOT NULL` },
      ["tenant", "item_id", "response_id"],
      [["tenant", "response_id"]],
    ],
    [
      "response_events",
      {
        tenant: owned,
        response_id: `${text} NOT NULL`,
        first_sequence: `${int} NOT NULL`,
        last_sequence: `${int} NOT NULL`,
        events: `${text} NOT NULL`,
      },
      ["tenant", "response_id", "first_sequence"],
      [],
    ],
  ];
  for (const [table, columns, key, indexes] of tables) {
    const name = (column: string): string => names.column(table, column);
    const list = (of: readonly string[]): string => of.map(name).join(", ");
    const at = names.table(table);
    const definitions = Object.entries(columns).map(([column, type]) => `${name(column)} ${type}`);
    const keyed = table === "response_items" ? dialect.keyed : "";
    yield {
      sql: `CREATE TABLE IF NOT EXISTS ${at} (${definitions.join(", ")}, PRIMARY KEY (${list(key)}))${keyed}`,
      params: [],
    };
    if (dialect.name === "postgres") yield* takeOver(names, table, columns, key);
    for (const [index, of] of indexes.entries())
      yield {
        sql: `CREATE INDEX IF NOT EXISTS ${names.index(table, `history_${index + 1}`)} ON ${at} (${list(of)})`,
        params: [],
      };
    // rows of SMG's have no time of their last change
    if ("updated_at" in columns)
      yield {
        sql: `UPDATE ${at} SET ${name("updated_at")} = ${name("created_at")} WHERE ${name("updated_at")} IS NULL`,
        params: [],
      };
  }
}

/**
 * A table that SMG made gets our columns; ids of any length; and keys in which each tenant has its own ids, since clients choose
 * those of items.
 */
function* takeOver(
  names: Names,
  table: TableName,
  columns: Readonly<Record<string, string>>,
  key: readonly string[],
): Work<void> {
  const at = names.table(table);
  for (const [column, type] of Object.entries(columns)) {
    const name = names.column(table, column);
    yield { sql: `ALTER TABLE ${at} ADD COLUMN IF NOT EXISTS ${name} ${type}`, params: [] };
    if (type.startsWith("TEXT"))
      yield { sql: `ALTER TABLE ${at} ALTER COLUMN ${name} TYPE ${POSTGRES.types.text}`, params: [] };
  }
  const rows = yield {
    sql: `SELECT c.conname AS name, array_to_string(array(
            SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k(number, place)
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number ORDER BY k.place), ',') AS columns
          FROM pg_constraint c WHERE c.conrelid = $1::regclass AND c.contype = 'p'`,
    params: [at],
  };
  const wanted = key.map((column) => names.column(table, column));
  const is = rows[0]?.["columns"];
  if (is === wanted.join(",").replaceAll('"', "")) return;
  if (rows[0] !== undefined) yield { sql: `ALTER TABLE ${at} DROP CONSTRAINT "${rows[0]["name"]}"`, params: [] };
  yield { sql: `ALTER TABLE ${at} ADD PRIMARY KEY (${wanted.join(", ")})`, params: [] };
}
