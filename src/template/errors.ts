/** A template that does not compile, fails on a conversation, or goes beyond what a template may use up. */
export class ChatTemplateError extends Error {
  override readonly name: string = "ChatTemplateError";
  /** Line of the template, counted from 1; undefined where none is to blame. */
  line: number | undefined;

  constructor(message: string, options?: { line?: number | undefined; cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.line = options?.line;
  }
}

/** The template called `raise_exception`: its way to refuse a conversation. The message is the template's own. */
export class TemplateRaisedError extends ChatTemplateError {
  override readonly name = "TemplateRaisedError";
}

/** The template went beyond a limit of work, depth or size. */
export class TemplateLimitError extends ChatTemplateError {
  override readonly name: string = "TemplateLimitError";
}

/** The prompt, or a text in it, is longer than any that is rendered. */
export class TemplateTextLimitError extends TemplateLimitError {
  override readonly name = "TemplateTextLimitError";
}
