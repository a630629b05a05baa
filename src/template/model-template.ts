import { type ChatTemplate, ChatTemplateError, compileChatTemplate } from "./chat-template.ts";

const SPECIALS = ["bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"];
const utf8 = new TextDecoder();

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
  readonly source: string;
  readonly specials: Readonly<Record<string, string>>;
}

/**
 * Finds a model's chat template as `transformers` does: chat_template.jinja first, then chat_template.json, then
 * tokenizer_config.json (a string, or a list of named ones of which `default` counts). Undefined when the model has none.
 */
export function findChatTemplate(
  files: ReadonlyMap<string, Uint8Array>,
  override?: string,
): TemplateSource | undefined {
  const config = jsonFile(files, "tokenizer_config.json");
  const specials: Record<string, string> = {};
  for (const name of SPECIALS) {
    const text = tokenText(config[name]);
    if (text !== undefined) specials[name] = text;
  }
  const jinja = files.get("chat_template.jinja");
  const source =
    override ??
    (jinja && utf8.decode(jinja)) ??
    templateText(jsonFile(files, "chat_template.json")["chat_template"]) ??
    templateText(config["chat_template"]);
  return source === undefined ? undefined : { source, specials };
}

function templateText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const named = (value as { name?: unknown; template?: unknown }[]).find((t) => t?.name === "default") ?? value[0];
  return typeof named?.template === "string" ? named.template : undefined;
}

export function compileModelTemplate(source: TemplateSource): ChatTemplate {
  return compileChatTemplate(source.source, source.specials);
}
