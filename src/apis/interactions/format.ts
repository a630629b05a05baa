/** The format that is asked of an answer. */
import type { Constraint } from "../../engines/engine.ts";
import { UnsupportedError } from "../../errors.ts";
import { rawItemTextsSteps, rawMemberSteps, rawMemberTextSteps } from "../../generation/raw-members.ts";
import type { Steps } from "../../steps.ts";
import { isObject } from "../shared/tools.ts";
import { wrong } from "./content.ts";
import type { InteractionsRequest, Loose } from "./schema.ts";

export interface AskedFormat {
  readonly constraint: Constraint;
  /** The same in the form of Chat Completions, for templates. */
  readonly responseFormat: unknown;
}

const JSON_TYPE = "application/json";
const MEDIA = ["audio", "image", "video"];

/**
 * `response_format`, an object or a list of them, or a schema beside the older `response_mime_type`. `raw`: the text of the request. Throws
 * InvalidRequestErrors.
 */
export function* formatOf(
  {
    response_format: given,
    response_mime_type: mime,
    response_modalities: modalities,
  }: Pick<InteractionsRequest, "response_format" | "response_mime_type" | "response_modalities">,
  raw: string | undefined,
): Steps<AskedFormat | undefined> {
  for (const modality of modalities ?? [])
    if (modality.toLowerCase() !== "text") throw unsupported("response_modalities", modality);
  const type = mime ?? undefined;
  const text = raw === undefined ? undefined : yield* rawMemberTextSteps(raw, "response_format");
  if (!Array.isArray(given)) return yield* entry((given ?? {}) as Loose, type, text, "response_format");
  const texts = text === undefined ? [] : yield* rawItemTextsSteps(text);
  const found: AskedFormat[] = [];
  for (const [i, each] of given.entries()) {
    const format = yield* entry(each as Loose, type, texts[i], `response_format[${i}]`);
    if (format !== undefined) found.push(format);
  }
  if (found.length > 1) throw wrong("response_format", "response_format may have only one format of text");
  return found[0];
}

const unsupported = (param: string, what: string) =>
  new UnsupportedError(`${param}: '${what.slice(0, 40)}' is not supported, only text`, { param });

function* entry(
  format: Loose,
  outerType: string | undefined,
  raw: string | undefined,
  at: string,
): Steps<AskedFormat | undefined> {
  const { type } = format;
  if (typeof type === "string" && MEDIA.includes(type)) throw unsupported(`${at}.type`, type);
  if (type !== "text" && Object.keys(format).length > 0) return yield* bareSchema(format, outerType, raw, at);
  const mime = format["mime_type"] ?? outerType;
  const schema = format["schema"] ?? undefined;
  if (mime !== JSON_TYPE) {
    if (schema !== undefined) throw wrong(`${at}.mime_type`, `${at}.schema needs the mime_type ${JSON_TYPE}`);
    if (mime !== undefined && mime !== "text/plain") throw unsupported(`${at}.mime_type`, String(mime));
    return undefined;
  }
  if (schema === undefined) return { constraint: { kind: "json_object" }, responseFormat: { type: "json_object" } };
  if (!isObject(schema)) throw wrong(`${at}.schema`, `${at}.schema must be an object`);
  const text = raw === undefined ? undefined : yield* rawMemberTextSteps(raw, "schema");
  return schemaFormat(
    text ?? JSON.stringify(schema),
    text === undefined ? schema : yield* rawMemberSteps(raw!, "schema"),
  );
}

/** As it was before there were types of formats. */
function* bareSchema(schema: Loose, mime: string | undefined, raw: string | undefined, at: string): Steps<AskedFormat> {
  if (mime !== JSON_TYPE)
    throw wrong(`${at}.type`, `${at}.type must be text; a bare schema needs the response_mime_type ${JSON_TYPE}`);
  const wrapped = raw === undefined ? undefined : yield* rawMemberSteps(`{"schema":${raw}}`, "schema");
  return schemaFormat(raw ?? JSON.stringify(schema), wrapped ?? schema);
}

const schemaFormat = (text: string, schema: unknown): AskedFormat => ({
  constraint: { kind: "json_schema", schema: text },
  responseFormat: { type: "json_schema", json_schema: { name: "answer", schema } },
});
