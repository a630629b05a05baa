/** Templates that do not compile: they may cost a model its chat, but never its place in the fleet. */
import { type ChatTemplate, compileChatTemplate, type NamedTemplates } from "../template/chat-template.ts";
import { ChatTemplateError } from "../template/errors.ts";
import { compileModelTemplate, type TemplateSource } from "../template/model-template.ts";

/**
 * The templates, of which each that does not compile is replaced by one that refuses every conversation with the reason; `told` gets
 * the reason too, with the line.
 */
export function usableTemplate(template: TemplateSource, told: (problem: string) => void): TemplateSource {
  const usable = (name: string, source: string, specials: TemplateSource["specials"]): string => {
    const problem = compileProblem(() => compileChatTemplate({ [name]: source }, specials));
    if (problem === undefined) return source;
    told(problem);
    return refusing(`The model cannot chat: ${problem}`);
  };
  const { source, specials, named } = template;
  if (compileProblem(() => compileModelTemplate(template)) === undefined) return template;
  if (named === undefined) return { ...template, source: usable("default", source, specials) };
  const all = Object.fromEntries(Object.entries(named).map(([name, text]) => [name, usable(name, text, specials)]));
  return { ...template, source: all["default"] ?? Object.values(all)[0] ?? "", named: all };
}

/** The templates, compiled when they are first used; each that does not compile is replaced as by `usableTemplate`. */
export function compiledOnce(template: TemplateSource, told: (problem: string) => void): () => ChatTemplate {
  let compiled: ChatTemplate | undefined;
  return () => {
    compiled ??= compileUsable(template, told);
    return compiled;
  };
}

function compileUsable(template: TemplateSource, told: (problem: string) => void): ChatTemplate {
  try {
    return compileModelTemplate(template);
  } catch (error) {
    if (!(error instanceof ChatTemplateError)) throw error;
    return compileModelTemplate(usableTemplate(template, told));
  }
}

/** What is wrong with a template or named ones, with the line; undefined: they compile. */
export function templateProblem(source: string | NamedTemplates): string | undefined {
  return compileProblem(() => compileChatTemplate(source, {}));
}

function compileProblem(compile: () => unknown): string | undefined {
  try {
    compile();
    return undefined;
  } catch (error) {
    if (!(error instanceof ChatTemplateError)) throw error;
    return error.message;
  }
}

/** A template that raises its message, which may hold anything. */
const refusing = (message: string): string => `{{ raise_exception("${message.replace(/["\\]/g, "\\$&")}") }}`;
