/**
 * Texts of bodies whose numbers and key order count: prompts print tools, the variables of templates, schemas of formats, and arguments of
 * calls; a batch has such bodies in it.
 */
const MEMBERS = [
  ...["tools", "functions", "documents", "response_format", "chat_template_kwargs"],
  ...["text", "output_config", "output_format", "requests"],
];

const texts = new WeakMap<object, string>();

/** Keeps the text of a parsed body for as long as the body lives, where a prompt may print parts of it. */
export function rememberText(body: object, text: string): void {
  const { generation_config: config } = body as { generation_config?: unknown };
  const hasVariables = isObject(member(config, "chat_template_kwargs"));
  if (MEMBERS.some((name) => name in body) || hasVariables || hasObjectArguments(body)) texts.set(body, text);
}

/**
 * Is there a call whose arguments are an object, not text: in a message, in a block of its content, or among the items of an input? Or such
 * a result? Nothing is known of the body.
 */
function hasObjectArguments(body: object): boolean {
  const { messages, input } = body as { messages?: unknown; input?: unknown };
  return (
    list(messages).some(
      (message) =>
        isObject(member(member(message, "function_call"), "arguments")) ||
        list(member(message, "tool_calls")).some((call) => isObject(member(member(call, "function"), "arguments"))) ||
        list(member(message, "content")).some((block) => isObject(member(block, "input"))),
    ) || list(input).some((item) => isObject(member(item, "arguments")) || isObject(member(item, "result")))
  );
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;

/** Keeps the text of a parsed body, whatever it holds. */
export const keepText = (body: object, text: string): void => void texts.set(body, text);

/** The text that a body was parsed from; undefined where it was not kept. */
export const rawBody = (body: object): string | undefined => texts.get(body);
