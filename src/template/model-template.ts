import { type ChatTemplate, compileChatTemplate, type NamedTemplates } from "./chat-template.ts";
import { kimiToolsText, sortedKeys } from "./encoders/kimi-tools.ts";
import { type EncoderName, nativeEncoder } from "./encoders/native-encoder.ts";
import { ChatTemplateError } from "./errors.ts";
import { plainValue } from "./plain-value.ts";

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

type Json = Readonly<Record<string, unknown>>;

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ChatTemplateError(`${name} is not JSON: ${(error as Error).message}`);
  }
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;

function jsonFile(files: ReadonlyMap<string, Uint8Array>, name: string): Json {
  const bytes = files.get(name);
  const value = bytes === undefined ? undefined : parsed(utf8.decode(bytes), name);
  return isObject(value) ? value : {};
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
  /** The model is a Kimi K2.5: what runs it computes one more variable, the tools as TypeScript. */
  readonly kimiTools?: true;
}

/** Folder of further templates, each under its file's name. */
const ADDITIONAL = /^additional_chat_templates\/([^/]+)\.jinja$/;

/**
 * Finds a model's chat template as `transformers` does: chat_template.jinja and the files of additional_chat_templates first, then
 * chat_template.json, then tokenizer_config.json; the last two hold a text or a list of named ones. Undefined when the model has none.
 * Throws a ChatTemplateError for files that are not JSON.
 */
export function findChatTemplate(files: ReadonlyMap<string, Uint8Array>): TemplateSource | undefined {
  const json = files.get(JSON_NAME);
  const found =
    templateFiles(files) ??
    (json && jsonTemplates(utf8.decode(json), JSON_NAME)) ??
    templateTexts(jsonFile(files, "tokenizer_config.json")["chat_template"]);
  return found === undefined ? undefined : templateSource(found, templateVariables(files));
}

/** A template, or several by name, with the variables of its model. */
export function templateSource(
  templates: string | NamedTemplates,
  specials: TemplateSource["specials"],
): TemplateSource | undefined {
  if (typeof templates === "string") return { source: templates, specials };
  const source = templates["default"] ?? Object.values(templates)[0];
  return source === undefined ? undefined : { source, specials, named: templates };
}

const JSON_NAME = "chat_template.json";

/**
 * What a chat_template.json holds: the template, or a list of named ones, by itself or as `chat_template`; undefined: neither.
 * Throws a ChatTemplateError with the file's name where it is not JSON.
 */
export function jsonTemplates(text: string, name: string): string | NamedTemplates | undefined {
  const value = parsed(text, name);
  return templateTexts(isObject(value) && !Array.isArray(value) ? value["chat_template"] : value);
}

/** `bos_token` and the like of a model; models name further ones of their own, e.g. `image_token`. */
export function templateVariables(files: ReadonlyMap<string, Uint8Array>): Readonly<Record<string, string>> {
  const config = jsonFile(files, "tokenizer_config.json");
  const map = jsonFile(files, "special_tokens_map.json");
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
  for (const name of files.keys()) {
    const [, stem] = ADDITIONAL.exec(name) ?? [];
    if (stem !== undefined) named[stem] = utf8.decode(files.get(name));
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
export function compileModelTemplate({ source, specials, named, encoder, kimiTools }: TemplateSource): ChatTemplate {
  if (encoder !== undefined) return nativeEncoder(encoder);
  const template = compileChatTemplate(named ?? source, specials);
  return kimiTools === true ? withKimiTools(template) : template;
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
