/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a value comes from; `name` is what the operator typed: `--port`, `COLLIE_PORT` or `collie.yaml:3: port`. */
export interface Source {
  readonly kind: "default" | "flag" | "environment" | "file";
  readonly name: string;
}

/** A value as it was given, not yet checked. Flags and the environment give text, lists of text or booleans; files anything. */
export interface Given {
  readonly source: Source;
  readonly value: unknown;
}

/** Given values by flag name. */
export type GivenValues = Map<string, Given>;

/** A name for messages in which nothing may be hidden or break the line. */
export function quoted(value: string): string {
  const shown = value.length > 80 ? `${value.slice(0, 77)}...` : value;
  return JSON.stringify(shown.replace(/\/\/[^/@\s]+@/, "//...@"));
}
