/** What `--chat-template` and the like name: one of the model's templates, a native encoder, or a file. */
import { readFileSync } from "node:fs";
import type { ModelSource } from "../parsers/detect.ts";
import { ENCODER_NAMES, type EncoderName } from "../template/encoders/native-encoder.ts";
import { ChatTemplateError } from "../template/errors.ts";
import {
  findChatTemplate,
  jsonTemplates,
  type TemplateSource,
  templateSource,
  templateVariables,
} from "../template/model-template.ts";
import { modelTemplate, ofKind } from "./model-kind.ts";
import { templateProblem } from "./usable-template.ts";

type Files = ReadonlyMap<string, Uint8Array>;
type FileText = NonNullable<ReturnType<typeof jsonTemplates>>;

/**
 * The template of a model that a setting means, in this order: one of the model's own by its name, a native encoder by its name, a file
 * with a Jinja template or, of the name `*.json`, with what chat_template.json holds. `given` is undefined: the model's own; that is
 * undefined where it has none. Throws an UnknownTemplateError for what is none of them, and other ChatTemplateErrors for files that are not
 * JSON.
 */
export function givenTemplate(kind: ModelSource, files: Files, given: string | undefined): TemplateSource | undefined {
  if (given === undefined) return modelTemplate(kind, files);
  const specials = templateVariables(files);
  const { named = {}, source } = findChatTemplate(files) ?? {};
  const own = Object.hasOwn(named, given) ? named[given] : given === "default" ? source : undefined;
  if (own !== undefined) return ofKind(kind, { source: own, specials });
  if (isEncoder(given)) return { source: "", specials: {}, encoder: given };
  const text = fileText(given);
  if (text !== undefined) return ofKind(kind, templateSource(text, specials));
  const names = [...Object.keys(named), ...ENCODER_NAMES].join(", ");
  throw new UnknownTemplateError(`${JSON.stringify(given)} is no file, and none of ${names}`);
}

/** A setting names a template that there is not. */
export class UnknownTemplateError extends ChatTemplateError {}

/** What can be said of such a setting before the model is known; undefined: it may be right. */
export function givenProblem(given: string): string | undefined {
  if (isEncoder(given)) return undefined;
  try {
    const text = fileText(given);
    if (text !== undefined) return templateProblem(text);
  } catch (error) {
    return (error as Error).message;
  }
  return /[/\\]|\.(?:jinja2?|j2|json|txt)$/.test(given) ? "does not exist" : undefined; // a name of the model's, perhaps
}

/** Templates of a file; undefined: there is no such file. Throws a ChatTemplateError, or the system's error. */
function fileText(path: string): FileText | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
  if (!path.endsWith(".json")) return text;
  const templates = jsonTemplates(text, path);
  if (templates === undefined) throw new ChatTemplateError(`${path} holds no chat_template`);
  return templates;
}

const isEncoder = (name: string): name is EncoderName => (ENCODER_NAMES as readonly string[]).includes(name);
