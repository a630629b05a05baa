import { readFileSync } from "node:fs";
import { isatty } from "node:tty";
import { ConfigError } from "../config/config-error.ts";
import { fileProblem } from "../config/file-problem.ts";
import type { Environment } from "../config/given.ts";
import type { ValuesOf } from "../config/option.ts";
import { resolveOptions } from "../config/resolve.ts";
import { BlockWriter, OutputClosedError, readAll } from "./byte-streams.ts";
import { drawReport, type Screen } from "./explain-draw.ts";
import { explainOptions } from "./explain-options.ts";
import { readReport } from "./explain-report.ts";

const STDIN = 0;
const STDOUT = 1;
const ANSWER_MS = 30_000;
const USUAL_WIDTH = 80;
const MOST_WIDTH = 160;

type Values = ValuesOf<typeof explainOptions>;

/** The gateway did not answer as it should, or what was given to ask of it cannot be read. */
class ExplainError extends Error {
  override readonly name = "ExplainError";
}

/** `collie explain`: asks a gateway where a prompt would go, and draws why. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { values } = resolveOptions(explainOptions, { args, env });
  if ([values.prompt, values.file, values.chat].filter((given) => given !== undefined).length > 1)
    throw new ConfigError(["--prompt, --file and --chat exclude each other"]);
  const gateway = gatewayOf(values.url);
  const out = new BlockWriter(STDOUT);
  try {
    const answer = await asked(gateway, requestOf(values), values);
    const report = readReport(answer);
    if (values.json) out.text(`${JSON.stringify(answer, undefined, 2)}\n`);
    else if (report === undefined)
      throw new ExplainError(`${gateway} answers in a form that is not known here: is it another release? See --json`);
    else out.text(drawReport(report, screenOf(env, values.most)));
    out.flush();
    return 0;
  } catch (error) {
    if (error instanceof OutputClosedError) return 0; // `head` has seen enough
    if (!(error instanceof ExplainError)) throw error;
    process.stderr.write(`collie: ${error.message}\n`);
    return 1;
  }
}

function gatewayOf(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !["http:", "https:"].includes(parsed.protocol))
    throw new ConfigError([`--url: ${JSON.stringify(url)} is no http:// or https:// address`]);
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}`;
}

/** The body of the request that is asked about. */
function requestOf({ model, prompt, file, chat }: Values): object {
  const named = model === undefined ? {} : { model };
  if (chat === undefined) return { ...named, prompt: prompt ?? textOf(file ?? STDIN) };
  const source = chat === "-" ? STDIN : chat;
  return { ...chatOf(textOf(source), nameOf(source)), ...named };
}

function chatOf(text: string, name: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ExplainError(`${name} is not JSON: ${(error as Error).message.replace(/^JSON Parse error: /, "")}`);
  }
  if (Array.isArray(value)) return { messages: value };
  if (typeof value === "object" && value !== null && "messages" in value) return value;
  throw new ExplainError(`${name} has no messages: expected {"messages": [...]}, or the messages alone`);
}

const nameOf = (source: number | string): string =>
  typeof source === "number" ? "standard input" : JSON.stringify(source);

function textOf(source: number | string): string {
  const name = nameOf(source);
  let bytes: Uint8Array;
  try {
    bytes = typeof source === "number" ? readAll(source) : readFileSync(source);
  } catch (error) {
    throw new ExplainError(`${name}: ${fileProblem(error)}`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ExplainError(`${name} is not valid UTF-8`);
  }
}

async function asked(gateway: string, body: object, { apiKey, routingKey, targetWorker }: Values): Promise<unknown> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (apiKey !== undefined) headers["authorization"] = `Bearer ${apiKey}`;
  if (routingKey !== undefined) headers["x-smg-routing-key"] = routingKey;
  if (targetWorker !== undefined) headers["x-smg-target-worker"] = targetWorker;
  let status: number;
  let text: string;
  try {
    const response = await fetch(`${gateway}/routing/explain`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    status = response.status;
    text = await response.text();
  } catch (error) {
    const reason = (error as Error).message.replace(/ Is the computer able to access the url\?$/, "");
    throw new ExplainError(`${gateway} cannot be asked: ${reason}`);
  }
  const answer = parsed(text);
  if (status === 200 && answer !== undefined) return answer;
  throw new ExplainError(`${gateway} refuses: ${refusal(status, answer)}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refusal(status: number, answer: unknown): string {
  const message = messageOf(answer);
  if (status === 401 || status === 403) return `${message ?? status} (--api-key gives the key)`;
  if (message !== undefined) return message;
  return status === 404 ? "it has no /routing/explain" : `it answers with status ${status}`;
}

/** What an error says, in whichever of the forms that gateways use. */
function messageOf(answer: unknown): string | undefined {
  const { error } = (answer ?? {}) as { readonly error?: unknown };
  if (typeof error === "string") return error;
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? message : undefined;
}

function screenOf(env: Environment, most: number): Screen {
  const isTerminal = isatty(STDOUT);
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  const width = Number(env["COLUMNS"]) || (isTerminal && process.stdout.columns) || USUAL_WIDTH;
  return {
    width: Math.min(width, MOST_WIDTH),
    hasColours: isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb",
    isUtf8: /utf-?8/i.test(locale),
    most,
  };
}
