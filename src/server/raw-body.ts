/** Texts of bodies whose numbers and key order count: prompts print tools and the variables of templates. */
const MEMBERS = ["tools", "functions", "documents", "response_format", "chat_template_kwargs"];

const texts = new WeakMap<object, string>();

/** Keeps the text of a parsed body for as long as the body lives, where a prompt may print parts of it. */
export function rememberText(body: object, text: string): void {
  if (MEMBERS.some((name) => name in body)) texts.set(body, text);
}

/** The text that a body was parsed from; undefined where it was not kept. */
export const rawBody = (body: object): string | undefined => texts.get(body);
