/** How `--model-path` and `--tokenizer-path` are read: a path on this machine, or a repository of the hub. */
import { existsSync } from "node:fs";

/** A model repository at a branch, tag or commit. */
export interface Repository {
  /** `org/name`, or `name`. */
  readonly id: string;
  readonly revision: string;
}

export type ModelSource =
  | { readonly kind: "local"; readonly path: string }
  | { readonly kind: "repository"; readonly repository: Repository };

export const DEFAULT_REVISION = "main";

/** The hub's rule for ids: https://huggingface.co/docs/huggingface_hub, validate_repo_id. `\w` and `\b` are ASCII here, as there. */
const ID = /^(?:\b[\w.-]{1,96}\b\/)?\b[\w.-]{1,96}\b$/;
/** Names that are meant as files; a repository of such a name would need another spelling. */
const FILE = /\.(?:json|model|tiktoken|gguf|jinja|txt)$/i;
/** A branch, tag or commit that is also safe as a path below `refs/` (git-check-ref-format is wider). */
const REVISION = /^[\w+-][\w.+-]*(?:\/[\w+-][\w.+-]*)*$/;
const MOST_REVISION = 200;

function isRevision(text: string): boolean {
  return REVISION.test(text) && !text.includes("..") && text.length <= MOST_REVISION;
}

/** `org/name`, `name`, or either with `@revision`, as a repository; undefined if it is no such name. Looks at no disk. */
export function parseRepository(value: string): Repository | undefined {
  const at = value.indexOf("@");
  const id = at < 0 ? value : value.slice(0, at);
  const revision = at < 0 ? DEFAULT_REVISION : value.slice(at + 1);
  if (!ID.test(id) || id.includes("--") || id.includes("..") || id.endsWith(".git") || FILE.test(id)) return undefined;
  return isRevision(revision) ? { id, revision } : undefined;
}

/** What a value means: a path that exists wins, then a repository; undefined if it can be neither. */
export function modelSource(value: string): ModelSource | undefined {
  if (existsSync(value)) return { kind: "local", path: value };
  const repository = parseRepository(value);
  return repository && { kind: "repository", repository };
}

/** What is wrong with the value of a model's path, for the message at a start; undefined if it may work. */
export function sourceProblem(value: string): string | undefined {
  return modelSource(value) === undefined
    ? "does not exist on this machine, and is no repository of a hub (org/name or org/name@revision)"
    : undefined;
}

/**
 * The repository that a path into somebody else's hub cache was downloaded from, e.g. an engine's
 * `/root/.cache/huggingface/hub/models--org--name/snapshots/COMMIT`; undefined for other paths.
 */
export function repositoryOfCachePath(path: string): Repository | undefined {
  const found = /(?:^|\/)models--([^/]+)(?:\/snapshots\/([0-9a-f]{40}))?\/?$/.exec(path);
  const id = found?.[1]?.replace("--", "/");
  if (id === undefined) return undefined;
  return parseRepository(found?.[2] === undefined ? id : `${id}@${found[2]}`);
}

/** As it is written on the command line. */
export function repositoryText({ id, revision }: Repository): string {
  return revision === DEFAULT_REVISION ? id : `${id}@${revision}`;
}
