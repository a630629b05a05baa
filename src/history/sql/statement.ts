/** SQL that both databases run: a work is a generator that yields statements and gets their rows; the driver may wait or not. */

export type Value = string | number | null;
export type Row = Readonly<Record<string, unknown>>;

export interface Statement {
  /** With parameters $1, $2, … */
  readonly sql: string;
  readonly params: readonly Value[];
}

export type Work<T> = Generator<Statement, T, readonly Row[]>;

/** Where the two databases differ. Times are microseconds since 1970. */
export interface Dialect {
  readonly name: "sqlite" | "postgres";
  readonly types: { readonly text: string; readonly json: string; readonly time: string; readonly int: string };
  /** A parameter as a value of the json type, the time type. */
  json(parameter: string): string;
  time(parameter: string): string;
  /** A text expression as a whole number. */
  int(expression: string): string;
  /** A json column as text, a time column as a number. */
  text(column: string): string;
  micros(column: string): string;
  /** UTF-8 bytes of a text. */
  octets(expression: string): string;
  /** Rows with one column `value`: the elements of a JSON array in a parameter. */
  each(parameter: string): string;
  eachText(parameter: string): string;
  /** Behind a SELECT: holds these rows until the end of the transaction. */
  readonly lock: string;
  /** The word of a recursive query is the same; a table of small rows may lie in its key. */
  readonly keyed: string;
}

export const SQLITE: Dialect = {
  name: "sqlite",
  types: { text: "TEXT", json: "TEXT", time: "INTEGER", int: "INTEGER" },
  json: (parameter) => parameter,
  time: (parameter) => parameter,
  int: (expression) => `CAST(${expression} AS INTEGER)`,
  text: (column) => column,
  micros: (column) => column,
  octets: (expression) => `octet_length(${expression})`,
  each: (parameter) => `(SELECT value FROM json_each(${parameter}))`,
  eachText: (parameter) => `(SELECT value FROM json_each(${parameter}))`,
  lock: "",
  keyed: " WITHOUT ROWID",
};

export const POSTGRES: Dialect = {
  name: "postgres",
  // by bytes, as everywhere else, whatever the database's language
  types: { text: 'TEXT COLLATE "C"', json: "JSON", time: "TIMESTAMPTZ", int: "BIGINT" },
  // by way of text, or the driver would print the text as a JSON string
  json: (parameter) => `${parameter}::text::json`,
  time: (parameter) => `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`,
  int: (expression) => `(${expression})::bigint`,
  text: (column) => `${column}::text`,
  micros: (column) => `(extract(epoch from ${column}) * 1000000)::bigint::float8`,
  octets: (expression) => `octet_length(${expression})`,
  each: (parameter) => `json_array_elements(${parameter}::text::json) AS each(value)`,
  eachText: (parameter) => `json_array_elements_text(${parameter}::text::json) AS each(value)`,
  lock: " FOR UPDATE",
  keyed: "",
};
