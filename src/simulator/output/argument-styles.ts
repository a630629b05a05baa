/** Arguments in the notations that xgrammar's `json_schema` format knows beside JSON. */

type Member = (key: string, value: unknown) => string;

/** A text as it is, anything else as JSON. */
const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** `type` of an argument of Kimi K3. */
const kimiType = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

const MEMBERS: Readonly<Record<string, Member>> = {
  qwen_xml: (key, value) => `<parameter=${key}>\n${plain(value)}\n</parameter>`,
  minimax_xml: (key, value) => `<parameter name="${key}">${plain(value)}</parameter>\n`,
  deepseek_xml: (key, value) =>
    `<｜DSML｜parameter name="${key}" string="${typeof value === "string"}">${plain(value)}</｜DSML｜parameter>\n`,
  glm_xml: (key, value) => `<arg_key>${key}</arg_key><arg_value>${plain(value)}</arg_value>`,
  kimi_k3_xml: (key, value) =>
    `<|open|>argument key="${key}" type="${kimiType(value)}"<|sep|>${plain(value)}<|close|>argument<|sep|>`,
};

/** The text of arguments in a style; absent and `json`: JSON. `unknown` makes the error that is thrown for other styles. */
export function argumentText(value: unknown, style: unknown, unknown: (style: string) => Error): string {
  if (style === undefined || style === "json") return JSON.stringify(value);
  const member = Object.hasOwn(MEMBERS, String(style)) ? MEMBERS[String(style)] : undefined;
  if (member === undefined) throw unknown(String(style));
  const isObject = typeof value === "object" && value !== null;
  return isObject
    ? Object.entries(value)
        .map(([key, inner]) => member(key, inner))
        .join("")
    : "";
}
