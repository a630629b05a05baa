/**
 * Harmony, the format of gpt-oss, as the package openai-harmony renders it. An assistant message is written in the order in which the
 * model makes it: reasoning (channel analysis), a preamble before calls (commentary), the calls, or the answer (final).
 */
import { PIECE_ITEMS, type Steps } from "../../steps.ts";
import { strftime } from "../engine/strftime.ts";
import { str } from "../engine/text.ts";
import { textOf, truthy, type Value } from "../engine/values.ts";
import type { PreparedMessage } from "../prepare-messages.ts";
import { type Conversation, encoderTemplate, joined, refuse } from "./conversation.ts";
import { type Call, callsOf, contentText, field, json, reasoningOf, roleOf } from "./fields.ts";
import { namespaceText } from "./harmony-types.ts";
import { effortOf } from "./thinking.ts";

const IDENTITY = "You are ChatGPT, a large language model trained by OpenAI.";
const CUTOFF = "2024-06";
const CHANNELS = "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
const FUNCTIONS = "Calls to these tools must go to the commentary channel: 'functions'.";

/** The model has three levels and always reasons; clients' further levels go to the next of them. */
const EFFORTS: ReadonlyMap<string, string> = new Map([
  ["none", "low"],
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "high"],
  ["max", "high"],
]);

export const harmony = encoderTemplate(function* (conversation) {
  const { messages, tools, addGenerationPrompt } = conversation;
  if (truthy(conversation.variables.get("builtin_tools") ?? null))
    return refuse("Built-in tools have no place in this prompt encoder", "chat_template_kwargs");
  const leads = isInstruction(messages[0]);
  const instructions = leads ? contentText(messages[0] ?? new Map(), "") : "";
  const rest = leads ? messages.slice(1) : messages;
  const lastFinal = rest.findLastIndex(isFinal);
  const callees = new Callees(rest);
  let text = envelope("system", systemText(conversation)) + developerText(instructions, yield* declared(tools));
  for (const [at, message] of rest.entries()) {
    text += yield* messageText(message, at, callees, lastFinal);
    if (at % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
  }
  return addGenerationPrompt ? `${text}<|start|>assistant` : text;
});

function* declared(tools: readonly Value[]): Steps<string> {
  return tools.length === 0 ? "" : yield* namespaceText(tools);
}

/** @param header role, recipient and channel. */
const envelope = (header: string, content: string, end = "<|end|>"): string =>
  `<|start|>${header}<|message|>${content}${end}`;

function systemText({ tools, variables, now }: Conversation): string {
  const effort = effortOf(variables, "reasoning_effort") ?? "medium";
  const level =
    EFFORTS.get(String(effort)) ?? refuse(`The model knows no reasoning effort '${effort}'`, "reasoning_effort");
  const identity = textOf(variables.get("model_identity") ?? null) ?? IDENTITY;
  const date = strftime(now, "%Y-%m-%d");
  const functions = tools.length === 0 ? "" : `\n${FUNCTIONS}`;
  return `${identity}\nKnowledge cutoff: ${CUTOFF}\nCurrent date: ${date}\n\nReasoning: ${level}\n\n${CHANNELS}${functions}`;
}

function developerText(instructions: string, tools: string): string {
  const sections = [
    ...(instructions === "" ? [] : [`# Instructions\n\n${instructions}`]),
    ...(tools === "" ? [] : [tools]),
  ];
  return sections.length === 0 ? "" : envelope("developer", sections.join("\n\n"));
}

const isInstruction = (message: PreparedMessage | undefined): boolean =>
  message !== undefined && ["system", "developer"].includes(roleOf(message));

/** An answer: reasoning before it is of no more use to the model. */
const isFinal = (message: PreparedMessage): boolean =>
  roleOf(message) === "assistant" && callsOf(message).length === 0 && contentText(message, "") !== "";

function* messageText(message: PreparedMessage, at: number, callees: Callees, lastFinal: number): Steps<string> {
  const content = contentText(message, "");
  switch (roleOf(message)) {
    case "user":
      return envelope("user", content);
    case "system":
    case "developer":
      return developerText(content, "");
    case "tool":
      return envelope(`functions.${callees.of(message, at)} to=assistant<|channel|>commentary`, content);
    case "assistant":
      return yield* assistantText(message, content, at <= lastFinal);
  }
  return refuse(`The model's prompt format has no role '${roleOf(message)}'`);
}

function* assistantText(message: PreparedMessage, content: string, answered: boolean): Steps<string> {
  const calls = callsOf(message);
  const reasoning = reasoningOf(message);
  const channel = calls.length === 0 ? "final" : "commentary";
  return (
    (reasoning === "" || answered ? "" : envelope("assistant<|channel|>analysis", reasoning)) +
    (content === "" ? "" : envelope(`assistant<|channel|>${channel}`, content)) +
    (yield* joined(calls, callText))
  );
}

function callText({ name, arguments: given }: Call): string {
  const header = `assistant to=functions.${name}<|channel|>commentary <|constrain|>json`;
  return envelope(header, given === null ? "" : (textOf(given) ?? json(given)), "<|call|>");
}

/** The functions whose results tool messages hold. Asked in the order of the messages, each of which is looked at once. */
class Callees {
  private readonly byId = new Map<string | undefined, string>();
  private lastCalls: readonly Call[] = [];
  private seen = 0;

  constructor(private readonly messages: readonly PreparedMessage[]) {}

  /** The function by the id of its call, else by the message's own name, else the only call of the turn before. */
  of(message: PreparedMessage, at: number): string {
    this.seeUpTo(at);
    const id = field(message, "tool_call_id");
    const called = id === null ? undefined : this.byId.get(str(id));
    const own = textOf(field(message, "name"))?.replace(/^functions\./, "");
    const [only, ...others] = this.lastCalls.slice(0, 2);
    const name = called ?? own ?? (others.length === 0 ? only?.name : undefined);
    return name ?? refuse("A tool message has neither a name nor the id of a tool call before it");
  }

  private seeUpTo(at: number): void {
    for (; this.seen < at; this.seen++) {
      const message = this.messages[this.seen]!;
      const calls = callsOf(message);
      for (const { id, name } of calls) this.byId.set(id, name);
      if (roleOf(message) === "assistant") this.lastCalls = calls;
    }
  }
}
