/** What the checks have to know of each dialect. What its requests look like is in wire-forms.ts. */
import type { WireForm } from "./wire-forms.ts";
import { mlxForm, sglangForm, tokenspeedForm, trtllmForm, vllmForm } from "./wire-forms.ts";

/** Releases of the engines' stubs: the oldest that is served, and the newest. */
export type Release = "0.4.14" | "0.4.28";
export const RELEASES: readonly Release[] = ["0.4.28", "0.4.14"];

export interface InteropDialect {
  readonly name: "vllm" | "sglang" | "tokenspeed" | "trtllm" | "mlx";
  /** The scripted engine's name of its model. */
  readonly model: string;
  /** Release since which it gives its tokenizer away; undefined: never. */
  readonly bundleSince: Release | undefined;
  /** Fields of requests that the gateway refuses for it, and the release from which on it does not. */
  readonly refuses: Readonly<Record<string, Release | "never">>;
  readonly form: WireForm;
  readonly embeds: boolean;
  readonly loads: boolean;
  /** Release since which it empties its cache when told. */
  readonly flushSince: Release | undefined;
}

const CONSTRAINTS = ["json_schema", "json_object", "regex", "grammar", "choice", "structural_tag"];
const never = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, "never" as const]));

export const INTEROP_DIALECTS: readonly InteropDialect[] = [
  {
    name: "vllm",
    model: "scripted",
    bundleSince: "0.4.14",
    refuses: {},
    form: vllmForm,
    embeds: true,
    loads: true,
    flushSince: "0.4.28",
  },
  {
    name: "sglang",
    model: "scripted",
    bundleSince: "0.4.14",
    refuses: never("seed"),
    form: sglangForm,
    embeds: true,
    loads: true,
    flushSince: "0.4.14",
  },
  {
    name: "tokenspeed",
    model: "scripted",
    bundleSince: "0.4.28",
    refuses: { seed: "0.4.28" },
    form: tokenspeedForm,
    embeds: false,
    loads: true,
    flushSince: "0.4.14",
  },
  {
    name: "trtllm",
    model: "scripted",
    bundleSince: undefined,
    refuses: never("logit_bias"),
    form: trtllmForm,
    embeds: false,
    loads: false,
    flushSince: undefined,
  },
  {
    name: "mlx",
    model: "/models/scripted",
    bundleSince: "0.4.14",
    refuses: never("n", "min_tokens", ...CONSTRAINTS),
    form: mlxForm,
    embeds: false,
    loads: false,
    flushSince: undefined,
  },
];

/** Whether a release has what came with another. */
export const reaches = (release: Release, since: Release | "never" | undefined): boolean =>
  since !== undefined && since !== "never" && release >= since;

export const refuses = (dialect: InteropDialect, release: Release, field: string): boolean =>
  dialect.refuses[field] !== undefined && !reaches(release, dialect.refuses[field]);
