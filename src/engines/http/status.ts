/** What the status of an HTTP answer means, in the gateway's terms. */
import { EngineError, type EngineErrorKind } from "../engine.ts";
import { pauseOf, withoutAddresses } from "../engine-error.ts";

const KINDS: Readonly<Record<number, EngineErrorKind>> = {
  // the key is the gateway's, not the client's
  401: "failed",
  403: "failed",
  404: "not_found",
  405: "unimplemented",
  // it was in a hurry; as any 4xx, that is no mark against the worker
  408: "overloaded",
  422: "invalid",
  429: "overloaded",
  501: "unimplemented",
  502: "unavailable",
  503: "unavailable",
  504: "timeout",
};

/** The kind of failure that a status tells of; undefined for a success. What redirects is no engine. */
export function kindOfStatus(status: number): EngineErrorKind | undefined {
  if (status >= 200 && status < 300) return undefined;
  return KINDS[status] ?? (status >= 400 && status < 500 ? "invalid" : "failed");
}

const SHOWN = 2000;

/** The failure that an answer tells of: in the words of its error object, of whatever form, else of its text. */
export function statusError(status: number, text: string, retryAfter?: string | null): EngineError {
  const kind = kindOfStatus(status) ?? "failed";
  const said = withoutAddresses(wordsOf(text)).slice(0, SHOWN);
  return new EngineError(kind, said || `the engine answered with status ${status}`, {
    retryAfterMs: pauseOf(retryAfter?.trim() ?? "", Date.now()),
  });
}

/** `{error: {message}}` of OpenAI, `{error}`, `{message}` of SGLang, `{detail}` of FastAPI. */
function wordsOf(text: string): string {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return /^\s*</.test(text) ? "" : text.trim(); // pages of proxies are not for clients
  }
  for (let depth = 0; depth < 3; depth++) {
    if (typeof answer === "string") return answer;
    if (typeof answer !== "object" || answer === null) return "";
    const members = answer as Readonly<Record<string, unknown>>;
    answer = members["error"] ?? members["message"] ?? members["detail"];
  }
  return "";
}
