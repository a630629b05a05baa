/** The settings of the hub's own tools: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HubError, messageOf } from "./hub-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface HubSettings {
  /** Folder of `models--org--name` folders; undefined if there is no home to put one in. */
  readonly cacheDir: string | undefined;
  /** Without a slash at its end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly offline: boolean;
  /** Longest wait for the hub's answer about a repository, milliseconds. */
  readonly etagTimeoutMs: number;
  /** Longest silence while a file comes in, milliseconds. */
  readonly downloadTimeoutMs: number;
}

const ENDPOINT = "https://huggingface.co";
const DEFAULT_TIMEOUT_SECS = 10;
const MOST_TIMEOUT_SECS = 86_400;

/** As huggingface_hub reads switches. */
const isOn = (value: string | undefined): boolean => /^(?:1|on|yes|true)$/i.test(value ?? "");

/** Reads the settings, and the token's file where there is one. Throws `HubError` naming a variable that is wrong. */
export async function hubSettings(environment: Environment): Promise<HubSettings> {
  const home = huggingFaceHome(environment);
  const offline = isOn(environment["HF_HUB_OFFLINE"] || environment["TRANSFORMERS_OFFLINE"]);
  const given = environment["HF_HUB_CACHE"] || environment["HUGGINGFACE_HUB_CACHE"];
  return {
    cacheDir: given ? expanded(given, environment) : home && join(home, "hub"),
    endpoint: endpoint(environment),
    token: offline ? undefined : await accessToken(environment, home),
    offline,
    etagTimeoutMs: timeoutMs(environment, "HF_HUB_ETAG_TIMEOUT"),
    downloadTimeoutMs: timeoutMs(environment, "HF_HUB_DOWNLOAD_TIMEOUT"),
  };
}

function huggingFaceHome(environment: Environment): string | undefined {
  const { HF_HOME: given, XDG_CACHE_HOME: cache, HOME: home } = environment;
  if (given) return expanded(given, environment);
  if (cache) return expanded(join(cache, "huggingface"), environment);
  return home ? join(home, ".cache", "huggingface") : undefined;
}

/** With `~` and `$NAME` or `${NAME}` filled in; names that are not set stay as they are. */
function expanded(path: string, environment: Environment): string {
  const home = environment["HOME"];
  const absolute = home && /^~(?=\/|$)/.test(path) ? home + path.slice(1) : path;
  return absolute.replace(/\$(?:(\w+)|\{([^}]*)\})/g, (all, bare?: string, braced?: string) => {
    return environment[bare ?? braced ?? ""] ?? all;
  });
}

function endpoint(environment: Environment): string {
  const given = environment["HF_ENDPOINT"];
  if (!given) return ENDPOINT;
  const url = URL.parse(given);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new HubError(
      "setting",
      `HF_ENDPOINT must be an http:// or https:// URL without credentials, such as ${ENDPOINT}`,
    );
  }
  return given.replace(/\/+$/, "");
}

async function accessToken(environment: Environment, home: string | undefined): Promise<string | undefined> {
  if (isOn(environment["HF_HUB_DISABLE_IMPLICIT_TOKEN"])) return undefined;
  const given = environment["HF_TOKEN"] || environment["HUGGING_FACE_HUB_TOKEN"];
  const token = cleaned(given) ?? cleaned(await tokenFile(environment, home));
  // A header holds visible ASCII only; the text itself must not show in a message.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new HubError(
      "setting",
      `the hub's token (${given ? "HF_TOKEN" : "its file"}) holds characters that no token has`,
    );
  return token;
}

async function tokenFile(environment: Environment, home: string | undefined): Promise<string | undefined> {
  const given = environment["HF_TOKEN_PATH"];
  const path = given ? expanded(given, environment) : home && join(home, "token");
  if (path === undefined) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined; // nobody is logged in
    throw new HubError("setting", `the file of the hub's token can't be read: ${messageOf(error)}`);
  }
}

function cleaned(token: string | undefined): string | undefined {
  return token?.replaceAll(/[\r\n]/g, "").trim() || undefined;
}

function timeoutMs(environment: Environment, name: string): number {
  const text = environment[name];
  const seconds = text ? Number(text) : DEFAULT_TIMEOUT_SECS;
  if (!(seconds >= 0 && seconds <= MOST_TIMEOUT_SECS))
    throw new HubError("setting", `${name} must be a number of seconds, not ${JSON.stringify(text)}`);
  return (seconds || DEFAULT_TIMEOUT_SECS) * 1000;
}
