/**
 * Names of tables and columns. The defaults are those of SMG 1.9 (its `data_connector`), with what SMG has not; a schema setting in
 * SMG's own form renames them, so that a database which SMG filled can be taken over.
 */
import { HistorySetupError } from "./errors.ts";

const SMG_COLUMNS = {
  conversations: ["id", "created_at", "metadata"],
  responses: [
    "id",
    "conversation_id",
    "previous_response_id",
    "input",
    "created_at",
    "safety_identifier",
    "model",
    "raw_response",
  ],
  conversation_items: ["id", "response_id", "item_type", "role", "content", "status", "created_at"],
  conversation_item_links: ["conversation_id", "item_id", "added_at"],
} as const;

/** Columns of ours in SMG's tables, and tables of ours. */
const OWN_COLUMNS = {
  conversations: ["tenant", "updated_at"],
  responses: ["tenant", "kind", "status", "updated_at", "output_items"],
  conversation_items: ["tenant"],
  conversation_item_links: ["tenant"],
  response_items: ["tenant", "item_id", "response_id"],
  response_events: ["tenant", "response_id", "first_sequence", "last_sequence", "events"],
  history_migrations: ["version"],
} as const;

export type TableName = keyof typeof OWN_COLUMNS;
const TABLES = Object.keys(OWN_COLUMNS) as TableName[];

interface TableSetting {
  readonly table?: string;
  /** Name here -> name in the database. */
  readonly columns?: Readonly<Record<string, string>>;
}

export type SchemaSetting = { readonly owner?: string } & { readonly [T in TableName]?: TableSetting };

/** Checks a schema setting: SMG's keys, as far as they have a meaning here. Throws `HistorySetupError`. */
export function parseSchema(value: unknown): SchemaSetting {
  const members = objectOf(value, "the schema setting");
  const setting: Record<string, unknown> = {};
  for (const [key, given] of Object.entries(members)) {
    // SMG's way to say what its migrations did; ours look themselves
    if (key === "version" || key === "auto_migrate") continue;
    if (key === "owner") setting["owner"] = identifier(given, key);
    else if (TABLES.includes(key as TableName)) setting[key] = parseTable(key as TableName, given);
    else throw new HistorySetupError(`unknown key '${key}' in the schema setting`);
  }
  return setting;
}

function parseTable(name: TableName, value: unknown): TableSetting {
  const members = objectOf(value, name);
  const setting: { table?: string; columns?: Record<string, string> } = {};
  for (const [key, given] of Object.entries(members)) {
    if (key === "table") setting.table = identifier(given, `${name}.table`);
    else if (key === "columns") {
      setting.columns = {};
      for (const [column, to] of Object.entries(objectOf(given, `${name}.columns`))) {
        if (!columnsOf(name).includes(column)) throw new HistorySetupError(`${name} has no column '${column}'`);
        setting.columns[column] = identifier(to, `${name}.columns.${column}`);
      }
    } else if (!isEmpty(given)) throw new HistorySetupError(`${name}.${key} is not supported`);
  }
  const names = columnsOf(name).map((column) => setting.columns?.[column] ?? column);
  if (new Set(names).size < names.length) throw new HistorySetupError(`two columns of ${name} have one name`);
  return setting;
}

function columnsOf(table: TableName): readonly string[] {
  return [...(SMG_COLUMNS[table as keyof typeof SMG_COLUMNS] ?? []), ...OWN_COLUMNS[table]];
}

function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === "object" && Object.keys(value as object).length === 0);
}

function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new HistorySetupError(`${what} must be an object`);
  return value as Record<string, unknown>;
}

/** SMG's rule; 63 is what PostgreSQL keeps of a name. */
function identifier(value: unknown, what: string): string {
  if (typeof value !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(value))
    throw new HistorySetupError(`${what} must be a name of letters, digits and underscores, 63 at most`);
  return value;
}

export interface Names {
  /** The table, ready for SQL. */
  table(table: TableName): string;
  /** A column of it, ready for SQL. */
  column(table: TableName, column: string): string;
  /** A name for an index, unique among the tables. */
  index(table: TableName, suffix: string): string;
  readonly owner: string | undefined;
}

/** Names as SMG would write them: columns unquoted, so in lower case; tables quoted where there is an owner. */
export function namesOf(setting: SchemaSetting): Names {
  const quote = (name: string): string => `"${name}"`;
  const { owner } = setting;
  const bare = (table: TableName): string => setting[table]?.table ?? table;
  return {
    owner,
    table: (table) =>
      owner === undefined ? quote(bare(table).toLowerCase()) : `${quote(owner.toLowerCase())}.${quote(bare(table))}`,
    column: (table, column) => quote((setting[table]?.columns?.[column] ?? column).toLowerCase()),
    index: (table, suffix) => quote(`${bare(table).toLowerCase()}_${suffix}`.slice(-63)),
  };
}

/** Fields of Redis hashes and parts of its keys keep their case. */
export function fieldOf(setting: SchemaSetting, table: TableName, column: string): string {
  return setting[table]?.columns?.[column] ?? column;
}
