/** Most seconds that a setting may have: timers hold 31 bits of milliseconds. */
export const MOST_SECONDS = 2_000_000;

/**
 * One setting of a command. A table of these is the only home of its name, default, check and help text: flags, environment
 * variables, the YAML file, `--help` and `collie config --print` all come from it.
 */
interface OptionBase {
  /** Flag without dashes, e.g. `worker-urls`. The YAML key is the same; the environment variable is `COLLIE_WORKER_URLS`. */
  readonly flag: string;
  /** Other spellings of the flag that are accepted. */
  readonly aliases?: readonly string[];
  /** Other keys of a file that mean it. */
  readonly fileKeys?: readonly string[];
  /** Heading in `--help`. */
  readonly group: string;
  /** One sentence for `--help`, without the default. */
  readonly help: string;
  /** Hidden in `config --print`, and readable from a file with `@path`. */
  readonly secret?: boolean;
}

export type Option =
  | (OptionBase & {
      readonly type: "string";
      readonly default?: string;
      /** What is wrong with a value, or undefined. */
      readonly check?: (value: string) => string | undefined;
    })
  | (OptionBase & {
      readonly type: "integer" | "number";
      readonly default?: number;
      readonly min?: number;
      readonly max?: number;
    })
  | (OptionBase & { readonly type: "boolean"; readonly default?: boolean })
  | (OptionBase & { readonly type: "enum"; readonly values: readonly string[]; readonly default?: string })
  /** A list: the flag takes several values and may be repeated; the environment separates by commas or blanks. */
  | (OptionBase & {
      readonly type: "strings";
      readonly default?: readonly string[];
      readonly check?: (value: string) => string | undefined;
      /** The text of an item that a file gives as a group of keys; undefined where the group is none. */
      readonly ofGroup?: (group: Readonly<Record<string, unknown>>) => string | undefined;
    });

/** Settings by property name; the property is the flag in camel case (`worker-urls` -> `workerUrls`). */
export type OptionTable = Readonly<Record<string, Option>>;

type ValueOf<O extends Option> = O extends { type: "integer" | "number" }
  ? number
  : O extends { type: "boolean" }
    ? boolean
    : O extends { type: "strings" }
      ? readonly string[]
      : O extends { type: "enum"; values: readonly (infer V)[] }
        ? V
        : string;

/** The values of a table: options without a default may be undefined, lists and booleans never are. */
export type ValuesOf<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends { default: unknown } | { type: "strings" | "boolean" }
    ? ValueOf<T[K]>
    : ValueOf<T[K]> | undefined;
};
