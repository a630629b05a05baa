/** Names and expressions that the statements are made of. */
import type { Names, TableName } from "../schema.ts";
import type { Dialect } from "./statement.ts";

export interface Tables {
  readonly dialect: Dialect;
  /** The table, ready for SQL. */
  at(table: TableName): string;
  /** Columns of a table, the names joined by commas; `from` is an alias before each. */
  columns(table: TableName, names: string, from?: string): string;
}

export function tablesOf(dialect: Dialect, names: Names): Tables {
  return {
    dialect,
    at: (table) => names.table(table),
    columns: (table, wanted, from) =>
      wanted
        .split(" ")
        .map((column) => `${from === undefined ? "" : `${from}.`}${names.column(table, column)}`)
        .join(", "),
  };
}
