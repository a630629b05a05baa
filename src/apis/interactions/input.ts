/** The input of a request: a text, contents, or steps. */
import {
  asModelsWriteSteps,
  rawItemTextsSteps,
  rawMemberItemsSteps,
  rawMemberTextSteps,
} from "../../generation/raw-members.ts";
import type { Turns } from "../../generation/turns.ts";
import { PIECE_ITEMS, type Steps } from "../../steps.ts";
import { isObject } from "../shared/tools.ts";
import { isContent, missing, partsOf, textOfContent, wrong } from "./content.ts";
import type { InteractionsRequest, Loose } from "./schema.ts";

/** The thoughts that a signature is for; `visible`: the summary beside it. Undefined: it is not ours, or not of this text. */
export type OpenThought = (signature: string, visible: string) => string | undefined;

type Input = InteractionsRequest["input"];

/** JSON texts of the input's steps: what is stored of it. `raw`: the text of the request. Throws InvalidRequestError where there is none. */
export function* inputSteps(input: Input, raw: string | undefined): Steps<readonly string[]> {
  if (input === undefined || input === null) throw missing("input");
  if (input === "" || (Array.isArray(input) && input.length === 0)) throw wrong("input", "input must not be empty");
  const steps: string[] = [];
  let contents: string[] = [];
  const flush = () => {
    if (contents.length > 0) steps.push(`{"type":"user_input","content":[${contents.join(",")}]}`);
    contents = [];
  };
  for (const [i, { step, raw: text }] of (yield* sentSteps(input, raw)).entries()) {
    if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    const json = text ?? JSON.stringify(step);
    if (isContent(step)) contents.push(json);
    else {
      flush();
      steps.push(json);
    }
  }
  flush();
  return steps;
}

/** A step with its JSON text, where that is known: prompts print numbers and the order of keys as they were written. */
interface SentStep {
  readonly step: Loose;
  readonly raw: string | undefined;
  readonly at: string;
}

function* sentSteps(input: Input, raw: string | undefined): Steps<SentStep[]> {
  if (typeof input === "string") return [{ step: { type: "text", text: input }, raw: undefined, at: "input" }];
  const text = raw === undefined ? undefined : yield* rawMemberTextSteps(raw, "input");
  if (!Array.isArray(input)) return [{ step: input as Loose, raw: text, at: "input" }];
  const texts = text === undefined ? [] : yield* rawItemTextsSteps(text);
  return input.map((step: Loose, i) => ({ step, raw: texts[i], at: `input[${i}]` }));
}

/** Collects steps into the messages of a conversation. */
export class StepReader {
  /** Types of steps that were left out, as the model can't be told of them. */
  readonly left = new Set<string>();
  /** Names of the calls so far, by their ids. */
  private readonly calls = new Map<string, string>();

  constructor(
    private readonly turns: Turns,
    private readonly open: OpenThought,
  ) {}

  /** Steps of the interactions before this one. */
  *context(steps: readonly Loose[]): Steps<void> {
    for (const [i, step] of steps.entries()) {
      yield* this.read({ step, raw: undefined, at: "previous_interaction_id" });
      if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    }
  }

  /** The request's own. `raw`: the text of the request. Throws InvalidRequestErrors. */
  *input(input: Input, raw: string | undefined): Steps<void> {
    for (const [i, sent] of (yield* sentSteps(input, raw)).entries()) {
      yield* this.read(sent);
      if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    }
  }

  private *read(sent: SentStep): Steps<void> {
    const { step, at } = sent;
    const { type } = step;
    if (typeof type !== "string") throw missing(`${at}.type`);
    if (isContent(step)) {
      this.turns.user(textOfContent(step, at));
      return;
    }
    switch (type) {
      case "user_input":
        yield* this.userInput(sent);
        return;
      case "model_output": {
        const said = partsOf(step["content"], `${at}.content`);
        if (said !== undefined && said !== "") this.turns.assistant(said);
        return;
      }
      case "thought":
        this.thought(step);
        return;
      case "function_call":
        yield* this.call(sent);
        return;
      case "function_result":
        yield* this.result(sent);
        return;
      default:
        yield* this.hosted(sent, type);
    }
  }

  /** Results stand right behind the calls that they answer, whatever was written before them. */
  private *userInput({ step, raw, at }: SentStep): Steps<void> {
    const { content } = step;
    if (!Array.isArray(content))
      throw content ? wrong(`${at}.content`, `${at}.content must be a list`) : missing(`${at}.content`);
    const isResult = (each: unknown) => isObject(each) && each["type"] === "function_result";
    const texts = raw !== undefined && content.some(isResult) ? yield* rawMemberItemsSteps(raw, "content") : [];
    for (const [i, each] of (content as readonly unknown[]).entries()) {
      if (isResult(each)) yield* this.result({ step: each as Loose, raw: texts[i], at: `${at}.content[${i}]` });
      if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    }
    const said = content.flatMap((each: unknown, i) =>
      isResult(each) ? [] : [{ type: "text" as const, text: textOfContent(each, `${at}.content[${i}]`) }],
    );
    if (said.length > 0) this.turns.user(said.length === 1 ? said[0]!.text : said);
  }

  /** A thought counts only with a signature of ours, which a client that alters the text does not have. */
  private thought({ signature, summary }: Loose): void {
    const visible = Array.isArray(summary)
      ? summary
          .map((each: unknown) => (isObject(each) && typeof each["text"] === "string" ? each["text"] : ""))
          .join("")
      : "";
    const text = typeof signature === "string" ? this.open(signature, visible) : undefined;
    if (text === undefined) this.left.add("thought");
    else this.turns.reasoning(text);
  }

  private *call({ step, raw, at }: SentStep): Steps<void> {
    const name = textMember(step, "name", at);
    const id = textMember(step, "id", at);
    const given = step["arguments"] ?? {};
    if (!isObject(given)) throw wrong(`${at}.arguments`, `${at}.arguments must be an object`);
    this.calls.set(id, name);
    this.turns.call({ id, name, arguments: yield* writtenOr(raw, "arguments", given) });
  }

  private *result({ step, raw, at }: SentStep): Steps<void> {
    const id = textMember(step, "call_id", at);
    const name = this.calls.get(id);
    if (name === undefined)
      throw wrong(`${at}.call_id`, `${at}.call_id: there is no call with the id '${id.slice(0, 128)}'`);
    const { result } = step;
    if (result === undefined || result === null) throw missing(`${at}.result`);
    const said =
      typeof result === "string"
        ? result
        : isContents(result)
          ? (partsOf(result, `${at}.result`) ?? "")
          : yield* writtenOr(raw, "result", result);
    this.turns.result(id, said, {
      ...(typeof step["name"] === "string" && step["name"] !== "" && { name }),
      ...(step["is_error"] === true && { isError: true }),
    });
  }

  /** What tools of another server did in an earlier turn: to the model a call like any other, if it can be told of it. */
  private *hosted({ step, raw }: SentStep, type: string): Steps<void> {
    const { id, call_id: callId, name } = step;
    const tool = typeof name === "string" && name !== "" ? name : type.replace(/_(?:call|result)$/, "");
    if (type.endsWith("_call") && typeof id === "string" && step["arguments"] !== undefined) {
      this.calls.set(id, tool);
      this.turns.call({ id, name: tool, arguments: yield* writtenOr(raw, "arguments", step["arguments"]) });
    } else if (type.endsWith("_result") && typeof callId === "string" && this.calls.has(callId)) {
      const { result } = step;
      const text = typeof result === "string" ? result : yield* writtenOr(raw, "result", result ?? null);
      this.turns.result(callId, text, { name: tool, ...(step["is_error"] === true && { isError: true }) });
    } else this.left.add(type.slice(0, 60));
  }
}

const isContents = (result: unknown): boolean =>
  Array.isArray(result) && result.every((each: unknown) => isObject(each) && isContent(each));

/** JSON text of a member, with numbers and order of keys as they were written; as `JSON.parse` gave them where the text is not known. */
function* writtenOr(raw: string | undefined, name: string, value: unknown): Steps<string> {
  const text = raw === undefined ? undefined : yield* rawMemberTextSteps(raw, name);
  return yield* asModelsWriteSteps(text ?? JSON.stringify(value));
}

function textMember(step: Loose, name: string, at: string): string {
  const value = step[name];
  if (value === undefined || value === null || value === "") throw missing(`${at}.${name}`);
  if (typeof value !== "string") throw wrong(`${at}.${name}`, `${at}.${name} must be a string`);
  return value;
}
