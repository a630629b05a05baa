import { isatty } from "node:tty";
import { ConfigError } from "../config/config-error.ts";
import type { Environment } from "../config/given.ts";
import type { OptionTable, ValuesOf } from "../config/option.ts";
import { resolveOptions } from "../config/resolve.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { BlockWriter, lineBlocks, OutputClosedError, readAll } from "./byte-streams.ts";
import { isTold, modelFiles, modelTokenizer } from "./model.ts";
import { decodeLines, encodeLines, isTokenId, LineError } from "./tokenize-lines.ts";
import { tokenizeOptions } from "./tokenize-options.ts";
import { drawTokens, pieceText } from "./tokenize-pieces.ts";

const STDIN = 0;
const STDOUT = 1;

/** `collie tokenize`: text to token ids and back, for looking at a tokenizer and for checking it against another one. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { flags, words } = splitArguments(tokenizeOptions, args);
  // Of a gateway's settings in the environment only the model's path means something here.
  const { values } = resolveOptions(tokenizeOptions, { args: flags, env });
  const { modelPath } = values;
  if (modelPath === undefined)
    throw new ConfigError(["--model-path: is needed: a folder, a tokenizer's file or a repository (org/name)"]);
  if (values.jsonl && words.length > 0)
    throw new ConfigError([`${JSON.stringify(words[0])}: --jsonl reads standard input, not arguments`]);
  const out = new BlockWriter(STDOUT);
  try {
    const tokenizer = await modelTokenizer(await modelFiles(modelPath, env), env);
    if (values.jsonl) filter(tokenizer, values, out);
    else if (values.decode) decode(words, tokenizer, values, out);
    else encode(words, tokenizer, values, env, out);
    return 0;
  } catch (error) {
    if (error instanceof OutputClosedError) return 0; // `head` has seen enough
    if (!(error instanceof LineError || error instanceof InputError || isTold(error))) throw error;
    process.stderr.write(`collie: ${error.message}\n`);
    return 1;
  }
}

type Values = ValuesOf<typeof tokenizeOptions>;

/** What was given to work on is no text, or no ids. */
class InputError extends Error {
  override readonly name = "InputError";
}

function filter(tokenizer: Tokenizer, values: Values, out: BlockWriter): void {
  if (values.decode) decodeLines(lineBlocks(STDIN), tokenizer, values.skipSpecialTokens, out);
  else encodeLines(lineBlocks(STDIN), tokenizer, { addSpecialTokens: values.addSpecialTokens }, out);
}

function encode(
  words: readonly string[],
  tokenizer: Tokenizer,
  values: Values,
  env: Environment,
  out: BlockWriter,
): void {
  const ids = tokenizer.encode(words.length > 0 ? words.join(" ") : inputText(), {
    addSpecialTokens: values.addSpecialTokens,
  });
  if (isatty(STDOUT)) out.text(drawTokens(ids, tokenizer, !env["NO_COLOR"] && env["TERM"] !== "dumb"));
  else {
    const pieces = Array.from(ids, (id) => pieceText(tokenizer, id));
    out.text(`${JSON.stringify({ tokens: Array.from(ids), pieces, count: ids.length })}\n`);
  }
  out.flush();
}

function decode(words: readonly string[], tokenizer: Tokenizer, values: Values, out: BlockWriter): void {
  const ids = idsIn(words.length > 0 ? words.join(" ") : inputText());
  const decoder = tokenizer.decoder({ skipSpecialTokens: values.skipSpecialTokens });
  const text = ids.map((id) => decoder.push(id)).join("") + decoder.end();
  out.text(isatty(STDOUT) ? `${text}\n` : `${JSON.stringify({ text, count: ids.length })}\n`);
  out.flush();
}

function inputText(): string {
  const bytes = readAll(STDIN);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new InputError("standard input is not valid UTF-8");
  }
}

/** Ids as a JSON array, or as numbers with blanks or commas between them. */
function idsIn(text: string): number[] {
  let list: unknown;
  if (text.trim().startsWith("["))
    try {
      list = JSON.parse(text);
    } catch (error) {
      throw new InputError(
        `the token ids are not JSON: ${(error as Error).message.replace(/^JSON Parse error: /, "")}`,
      );
    }
  else
    list = text
      .split(/[\s,]+/)
      .filter((word) => word !== "")
      .map((word) => (/^\d+$/.test(word) ? Number(word) : word));
  if (!Array.isArray(list)) throw new InputError("the token ids are no JSON array");
  const wrong = list.find((id) => !isTokenId(id));
  if (wrong !== undefined) throw new InputError(`${JSON.stringify(wrong)} is no token id`);
  return list as number[];
}

/** Sets flags apart from the text between and after them; `--` ends the flags. */
function splitArguments(table: OptionTable, args: readonly string[]): { flags: string[]; words: string[] } {
  const takesValue = new Set(
    Object.values(table)
      .filter(({ type }) => type !== "boolean")
      .flatMap(({ flag, aliases }) => [flag, ...(aliases ?? [])])
      .concat("config")
      .map((name) => `--${name}`),
  );
  const flags: string[] = [];
  const words: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const argument = args[i]!;
    if (argument === "--") return { flags, words: [...words, ...args.slice(i + 1)] };
    if (!argument.startsWith("--")) words.push(argument);
    else {
      flags.push(argument);
      if (takesValue.has(argument) && i + 1 < args.length) flags.push(args[++i]!);
    }
  }
  return { flags, words };
}
