/** Texts of bodies whose numbers and key order count: prompts print tools, the variables of templates and arguments of calls. */
const MEMBERS = [
  "tools",
  "functions",
  "documents",
  "response_format",
  "chat_template_kwargs",
  // Messages, and batches of them
  "output_config",
  "output_format",
  "requests",
];

const texts = new WeakMap<object, string>();

/** Keeps the text of a parsed body for as long as the body lives, where a prompt may print parts of it. */
export function rememberText(body: object, text: string): void {
  if (MEMBERS.some((name) => name in body) || hasObjectArguments(body)) texts.set(body, text);
}

/** Do messages have calls whose arguments are an object, not text, or blocks with an `input`? Nothing is known of the body. */
function hasObjectArguments(body: object): boolean {
  const { messages } = body as { messages?: unknown };
  const isObject = (called: unknown) => typeof (member(called, "arguments") ?? undefined) === "object";
  return list(messages).some(
    (message) =>
      isObject(member(message, "function_call")) ||
      list(member(message, "content")).some((block) => member(block, "input") !== undefined) ||
      list(member(message, "tool_calls")).some((call) => isObject(member(call, "function"))),
  );
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;

/** The text that a body was parsed from; undefined where it was not kept. */
export const rawBody = (body: object): string | undefined => texts.get(body);
