import { type ChatTemplate, compileChatTemplate, type NamedTemplates } from "./chat-template.ts";
import { kimiToolsText, sortedKeys } from "./encoders/kimi-tools.ts";
import { type EncoderName, nativeEncoder } from "./encoders/native-encoder.ts";
import { ChatTemplateError } from "./errors.ts";
import { plainValue } from "./plain-value.ts";

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

function jsonFile(files: ReadonlyMap<string, Uint8Array>, name: string): Record<string, unknown> {
  const bytes = files.get(name);
  if (bytes === undefined) return {};
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch (error) {
    throw new ChatTemplateError(`${name} is not JSON: ${(error as Error).message}`);
  }
}

/** A token of tokenizer_config.json: a string, or an AddedToken with its text under `content`. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null && "content" in value && typeof value.content === "string")
    return value.content;
  return undefined;
}

/** What a serving thread needs to compile a template; can be sent between threads. */
export interface TemplateSource {
  /** The only template, or the one named `default`. */
  readonly source: string;
  /** Texts of special tokens by the variable that holds them. */
  readonly specials: Readonly<Record<string, string>>;
  /** All templates of a model that has several. */
  readonly named?: NamedTemplates;
  /** The model's prompts are no Jinja template's: this encoder writes them, and `source` is empty. */
  readonly encoder?: EncoderName;
}

/** Folder of further templates, each under its file's name. */
const ADDITIONAL = /^additional_chat_templates\/([^/]+)\.jinja$/;

/**
 * Finds a model's chat template as `transformers` does: chat_template.jinja and the files of additional_chat_templates first, then
 * chat_template.json, then tokenizer_config.json; the last two hold a text or a list of named ones. `override` is a template that
 * takes the place of all. Undefined when the model has none. Throws a ChatTemplateError for files that are not JSON.
 */
export function findChatTemplate(
  files: ReadonlyMap<string, Uint8Array>,
  override?: string,
): TemplateSource | undefined {
  const config = jsonFile(files, "tokenizer_config.json");
  const specials = specialTokens(config, jsonFile(files, "special_tokens_map.json"));
  if (override !== undefined) return { source: override, specials };
  const found =
    templateFiles(files) ??
    templateTexts(jsonFile(files, "chat_template.json")["chat_template"]) ??
    templateTexts(config["chat_template"]);
  if (found === undefined) return undefined;
  if (typeof found === "string") return { source: found, specials };
  const source = found["default"] ?? Object.values(found)[0];
  return source === undefined ? undefined : { source, specials, named: found };
}

/** `bos_token` and the like; models name further ones of their own, e.g. `image_token`. */
function specialTokens(
  config: Readonly<Record<string, unknown>>,
  map: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  const specials: Record<string, string> = {};
  const add = (name: string, value: unknown): void => {
    const text = tokenText(value);
    if (text !== undefined) specials[name] = text;
  };
  const extra = config["extra_special_tokens"];
  const named = typeof extra === "object" && extra !== null && !Array.isArray(extra) ? extra : {};
  for (const [name, value] of Object.entries(config)) if (name.endsWith("_token")) add(name, value);
  for (const [name, value] of Object.entries(named)) add(name, value);
  // an older file, which counts only where the configuration does not list its tokens
  if (config["added_tokens_decoder"] === undefined)
    for (const [name, value] of Object.entries(map)) if (name.endsWith("_token")) add(name, value);
  return specials;
}

function templateFiles(files: ReadonlyMap<string, Uint8Array>): string | NamedTemplates | undefined {
  const main = files.get("chat_template.jinja");
  const named: Record<string, string> = main === undefined ? {} : { default: utf8.decode(main) };
  for (const [name, bytes] of files) {
    const [, stem] = ADDITIONAL.exec(name) ?? [];
    if (stem !== undefined) named[stem] = utf8.decode(bytes);
  }
  const names = Object.keys(named);
  if (names.length === 0) return undefined;
  return names.length === 1 && main !== undefined ? named["default"] : named;
}

/** A template, or a list of `{name, template}`. */
function templateTexts(value: unknown): string | NamedTemplates | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const named: Record<string, string> = {};
  for (const item of value as { name?: unknown; template?: unknown }[]) {
    if (typeof item?.name === "string" && typeof item.template === "string") named[item.name] = item.template;
  }
  return Object.keys(named).length === 0 ? undefined : named;
}

/** Throws a ChatTemplateError that names the line when it does not compile. */
export function compileModelTemplate({ source, specials, named, encoder }: TemplateSource): ChatTemplate {
  if (encoder !== undefined) return nativeEncoder(encoder);
  const template = compileChatTemplate(named ?? source, specials);
  return source.includes(KIMI_TOOLS) ? withKimiTools(template) : template;
}

/** Kimi K2.5's template wants the tools as TypeScript, too, in this variable. */
const KIMI_TOOLS = "tools_ts_str";

function withKimiTools(template: ChatTemplate): ChatTemplate {
  return {
    render(input) {
      const text = input.tools === undefined ? undefined : kimiToolsText(input.tools);
      if (text === undefined) return template.render(input);
      const { variables = {} } = input;
      const own = variables instanceof Map ? variables : Object.entries(variables);
      const tools = sortedKeys(plainValue(input.tools)) as readonly unknown[];
      return template.render({ ...input, tools, variables: new Map([[KIMI_TOOLS, text], ...own]) });
    },
    get needsNullContent() {
      return template.needsNullContent;
    },
  };
}
