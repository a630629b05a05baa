/** Where a history is kept, as a URL says it. */
import { HistorySetupError } from "./errors.ts";

export type HistoryLocation =
  | { readonly type: "none" }
  | { readonly type: "memory" }
  | { readonly type: "sqlite"; readonly path: string }
  | { readonly type: "postgres" | "redis"; readonly url: string };

/**
 * Reads `none`, `memory:`, `sqlite:///absolute/path` (or `sqlite:relative`), `postgres://…`, `redis://…` (`rediss://`, `valkey://`).
 * Throws `HistorySetupError`, which does not repeat the URL: a password may be in it.
 */
export function parseHistoryUrl(url: string): HistoryLocation {
  if (url === "none" || url === "none:") return { type: "none" };
  if (url === "memory" || url === "memory:") return { type: "memory" };
  const scheme = /^([a-z]+):/.exec(url)?.[1];
  if (scheme === "sqlite") {
    const path = url.replace(/^sqlite:(\/\/)?/, "");
    if (path === "" || path.includes("\0")) throw new HistorySetupError("the history's sqlite URL names no file");
    return { type: "sqlite", path: decoded(path) };
  }
  const type = scheme === "postgresql" ? "postgres" : scheme === "rediss" || scheme === "valkey" ? "redis" : scheme;
  if (type !== "postgres" && type !== "redis")
    throw new HistorySetupError("the history must be none, memory:, sqlite:///path, postgres://… or redis://…");
  if (!URL.canParse(url)) throw new HistorySetupError(`the history's ${type} URL cannot be read`);
  return { type, url: scheme === "valkey" ? url.replace("valkey", "redis") : url };
}

/** A history's URL for logs: without user, password, or what stands behind a question mark. */
export function shownHistoryUrl(url: string): string {
  const location = parseHistoryUrl(url);
  if (!("url" in location)) return url;
  const { protocol, host, pathname } = new URL(location.url);
  return `${protocol}//${host}${pathname}`;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new HistorySetupError("the history's sqlite URL has a broken % escape");
  }
}
