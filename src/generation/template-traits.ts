/** What a chat template wants of its messages, found by rendering small conversations with it. */
import { GatewayError } from "../errors.ts";
import type { ChatTemplate, TemplateInput } from "../template/chat-template.ts";
import { onTrial } from "../template/engine/limits.ts";
import { parseLossless } from "../template/lossless-json.ts";
import { type MessageData, prepareMessages } from "../template/prepare-messages.ts";
import type { TurnTraits } from "./turn-order.ts";

/** How a template writes calls of earlier turns. */
export interface CallTraits {
  /** It takes arguments as an object, or as the JSON text. */
  readonly arguments: "object" | "text";
  /** Text would do as well. */
  readonly takesText: boolean;
  /** It writes the calls of a message whose content is null. At least one of the two is true. */
  readonly besideNull: boolean;
  /** It writes the calls of a message whose content is the empty string. */
  readonly besideEmpty: boolean;
  /** It takes several calls in one message. */
  readonly many: boolean;
  /**
   * `nine`: ids must be nine letters and digits. `nineOrMore`: shorter ones are refused. `kimi`: the id is all that names the function:
   * `functions.NAME:INDEX`.
   */
  readonly ids: "any" | "nine" | "nineOrMore" | "kimi";
  /** A prompt with a call of `PROBE_FUNCTION`. */
  readonly sample: string;
}

export type ContentRole = "system" | "user" | "assistant" | "tool";

export interface TemplateTraits {
  /** Whether content may come as text, and as parts, by role. */
  readonly content: Readonly<Record<ContentRole, { readonly text: boolean; readonly parts: boolean }>>;
  /** It knows the role developer. */
  readonly developer: boolean;
  /** System (and developer) messages may stand behind others. Where not, the template takes one in front. */
  readonly systemAnywhere: boolean;
  /** It shows such a message where it stands. */
  readonly systemInPlace: boolean;
  readonly turns: TurnTraits;
  /** Undefined: it writes no calls, or fails on every form of them. */
  readonly calls: CallTraits | undefined;
  /** A message of the user may stand right behind results. */
  readonly userBehindResults: boolean;
  /** Without a name a tool message's result fails, or has a gap where its name belongs: it needs that of the call it answers. */
  readonly namesResults: boolean;
  /** The variable that switches thinking on and off; undefined: none does. */
  readonly thinkingKey: "enable_thinking" | "thinking" | undefined;
}

export const PROBE_FUNCTION = "probe_of_a_function";
const TEXT = "probe of the content";
const ANOTHER = "probe of another";
const KEY = "probe_key";
const VALUE = "probe_value";
const RESULT_NAME = "probe_of_a_result";
const ARGUMENTS = `{"${KEY}": "${VALUE}"}`;
const NINE = "probeid01";
const NINE_MORE = "probeid02";
const LONG_ID = "call_probe_of_an_id";
const SHORT_ID = "p1";
const TOOL = {
  type: "function",
  function: {
    name: "probe_of_a_tool",
    description: "A probe.",
    parameters: { type: "object", properties: { a: { type: "string", description: "A text." } }, required: ["a"] },
  },
};

type Render = (messages: readonly MessageData[], more?: Partial<TemplateInput>) => string | undefined;

const known = new WeakMap<ChatTemplate, Map<string, TemplateTraits>>();

/** The traits of a template, or of the one that is taken for this name and tools; found once. */
export function templateTraits(template: ChatTemplate, name: string | undefined, hasTools: boolean): TemplateTraits {
  const byKind = known.get(template) ?? new Map<string, TemplateTraits>();
  known.set(template, byKind);
  const kind = name === undefined ? String(hasTools) : `${hasTools} ${name}`;
  let traits = byKind.get(kind);
  if (traits !== undefined) return traits;
  const fixed = { ...(name !== undefined && { template: name }), ...(hasTools && { tools: [TOOL] }) };
  const render: Render = (messages, more) => {
    try {
      const prepared = prepareMessages(messages, { keepNullContent: template.needsNullContent });
      return template.render({ messages: prepared, addGenerationPrompt: false, ...fixed, ...more });
    } catch (error) {
      if (error instanceof GatewayError) return undefined;
      throw error;
    }
  };
  // a template that is slow by intent must not hold the thread for each of the renders
  traits = onTrial(() => probe(render));
  // a client may name templates that are none: they must not fill the memory
  if (byKind.size < 16) byKind.set(kind, traits);
  return traits;
}

function probe(render: Render): TemplateTraits {
  const calls = callTraits(render);
  const [args, empty] = [calls?.arguments === "text" ? ARGUMENTS : parsed(), calls?.besideNull === false ? "" : null];
  const developer = knowsDeveloper(render);
  const turns = turnTraits(render);
  const systemAnywhere = turns.system && takesSystemAnywhere(render, developer);
  return {
    content: {
      system: contentTraits(render, (content) => [{ role: "system", content }, user("a")]),
      user: contentTraits(render, (content) => [{ role: "user", content }]),
      assistant: contentTraits(render, (content) => [user("a"), { role: "assistant", content }, user("b")]),
      tool: contentTraits(render, (content) => conversation(args, empty, NINE, { content })),
    },
    developer,
    systemAnywhere,
    systemInPlace: systemAnywhere && leavesSystem(render),
    turns,
    calls,
    userBehindResults: takesUserBehindResults(render, conversation(args, empty, NINE)),
    namesResults: needsNames((result) => render(conversation(args, empty, NINE, result))),
    thinkingKey: (["enable_thinking", "thinking"] as const).find((key) => switches(render, key)),
  };
}

const user = (content: unknown): MessageData => ({ role: "user", content });
const parsed = (): unknown => parseLossless(ARGUMENTS);

function contentTraits(
  render: Render,
  around: (content: unknown) => readonly MessageData[],
): { readonly text: boolean; readonly parts: boolean } {
  const asParts = (...texts: string[]) => render(around(texts.map((text) => ({ type: "text", text }))));
  const withText = render(around(TEXT));
  const text = withText?.includes(TEXT) === true;
  // some templates read the first part only
  const two = asParts(TEXT, ANOTHER);
  if (two?.includes(TEXT) !== true || !two.includes(ANOTHER)) return { text: true, parts: false };
  // a list that is printed shows more than its text; white space may differ
  const bare = (prompt: string | undefined) => prompt?.replaceAll(/\s/g, "");
  if (text) return { text, parts: bare(asParts(TEXT)) === bare(withText) };
  const parts = !/\btext["']\s*:\s*["']$/.test(two.slice(0, two.indexOf(TEXT)));
  return { text: !parts, parts };
}

function turnTraits(render: Render): TurnTraits {
  const [first, second] = [user("a"), user("b")];
  const answer: MessageData = { role: "assistant", content: "c" };
  // one that fails on any turns says nothing about their order
  const isUsable = render([first, answer, second]) !== undefined;
  const takes = (...messages: MessageData[]) => !isUsable || render(messages) !== undefined;
  return {
    system: takes({ role: "system", content: TEXT }, first),
    repeats: { user: takes(first, second), assistant: takes(first, answer, answer, second) },
    answerFirst: takes(answer, first),
  };
}

/** A role that is known is treated in another way than one that does not exist. */
function knowsDeveloper(render: Render): boolean {
  const as = (role: string) => render([{ role, content: TEXT }, user("a")]);
  const developer = as("developer");
  return developer?.includes(TEXT) === true && developer !== as("proberole")?.replaceAll("proberole", "developer");
}

function takesSystemAnywhere(render: Render, developer: boolean): boolean {
  const system = (content: string): MessageData => ({ role: "system", content });
  const shows = (prompt: string | undefined, ...texts: string[]) =>
    texts.every((text) => prompt?.includes(text) === true);
  if (!shows(render([system(TEXT), user("a")]), TEXT)) return true;
  const later = [user("a"), { role: "assistant", content: "b" }, system(TEXT), user("c")];
  const two = [system(ANOTHER), system(TEXT), user("c")];
  const both = [system(ANOTHER), { role: developer ? "developer" : "system", content: TEXT }, user("c")];
  return shows(render(later), TEXT) && shows(render(two), TEXT, ANOTHER) && shows(render(both), TEXT, ANOTHER);
}

function leavesSystem(render: Render): boolean {
  const system = { role: "system", content: TEXT };
  const prompt = render([user("a"), { role: "assistant", content: ANOTHER }, system, user("c")]);
  return prompt?.includes(ANOTHER) === true && prompt.indexOf(TEXT) > prompt.indexOf(ANOTHER);
}

function switches(render: Render, key: string): boolean {
  const turned = (on: boolean) => render([user("a")], { addGenerationPrompt: true, variables: { [key]: on } });
  const off = turned(false);
  return off !== undefined && off !== turned(true);
}

/** `result`: fields of the tool message. */
function conversation(args: unknown, content: unknown, id: string, result: object = {}): MessageData[] {
  const call = { id, type: "function", function: { name: PROBE_FUNCTION, arguments: args } };
  return [
    user("a"),
    { role: "assistant", content, tool_calls: [call] },
    { role: "tool", content: "b", tool_call_id: id, name: RESULT_NAME, ...result },
  ];
}

/** Templates that fail on the results themselves say nothing about what may stand behind them. */
function takesUserBehindResults(render: Render, results: readonly MessageData[]): boolean {
  if (render(results) === undefined) return true;
  return render([...results, user(TEXT)])?.includes(TEXT) === true;
}

/** Two calls of one message and their results. What the template makes of them is its own affair, as long as it takes them. */
function takesMany(render: Render, args: unknown, content: null | ""): boolean {
  const [asked, called, result] = conversation(args, content, NINE) as [MessageData, MessageData, MessageData];
  const calls = (called as { readonly tool_calls?: readonly object[] }).tool_calls ?? [];
  const both = [...calls, ...calls.map((call) => ({ ...call, id: NINE_MORE }))];
  return render([asked, { ...called, tool_calls: both }, result, { ...result, tool_call_id: NINE_MORE }]) !== undefined;
}

function needsNames(render: (result: object) => string | undefined): boolean {
  const named = render({});
  if (named?.includes(RESULT_NAME) !== true) return named !== undefined && render({ name: null }) === undefined;
  const nameless = render({ name: null }); // such a key is dropped
  return nameless === undefined || nameless === named.replaceAll(RESULT_NAME, "");
}

/** Both are there, and the text was not put into quotes, nor the object printed as Python does. */
const isClean = (text: string): boolean =>
  text.includes(KEY) && text.includes(VALUE) && !text.includes(`\\"${KEY}`) && !text.includes(`{'${KEY}'`);

function callTraits(render: Render): CallTraits | undefined {
  for (const content of [null, ""] as const) {
    const forms = (
      [
        ["object", parsed()],
        ["text", ARGUMENTS],
      ] as const
    ).map(([form, args]) => {
      const sample = cleanSample(render, args, content);
      return sample === undefined ? undefined : { form, args, sample };
    });
    const found = forms.find((form) => form !== undefined);
    if (found === undefined) continue;
    const { sample, args } = found;
    const fails = (id: string) => render(conversation(args, content, id)) === undefined;
    const isNamedById = sample.includes(NINE) && !sample.includes(PROBE_FUNCTION);
    return {
      arguments: found.form,
      takesText: forms[1] !== undefined,
      besideNull: content === null,
      many: takesMany(render, args, content),
      besideEmpty: content === "" || cleanSample(render, args, "") !== undefined,
      ids: fails(LONG_ID) ? "nine" : isNamedById ? "kimi" : fails(SHORT_ID) ? "nineOrMore" : "any",
      sample,
    };
  }
  return undefined;
}

function cleanSample(render: Render, args: unknown, content: null | ""): string | undefined {
  const sample = render(conversation(args, content, NINE));
  return sample !== undefined && isClean(sample) ? sample : undefined;
}
