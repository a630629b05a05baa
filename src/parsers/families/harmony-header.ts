import type { ToolIndex } from "../tools.ts";

/** What a message becomes. */
export type Channel = { readonly kind: "reasoning" | "text" } | { readonly kind: "call"; readonly tool: string };

const CHANNELS = ["analysis", "commentary", "final"];
/** Tools that the model knows from training and nobody runs here. */
const BUILT_IN = /^(?:python|browser|container)\b/;
const RECIPIENT = /(?:^|\s|>)to=(\S+?)(?=$|\s|<\|)/;
const CHANNEL_NAME = /<\|channel\|>\s*([^\s<]*)/;

/** What the channel and the recipient of a header say. */
export function kindOfHeader(header: string, tools: ToolIndex): Channel {
  const recipient = RECIPIENT.exec(header)?.[1];
  if (recipient !== undefined) {
    if (/^functions\../.test(recipient)) return { kind: "call", tool: recipient.slice("functions.".length) };
    if (tools.has(recipient)) return { kind: "call", tool: recipient };
    if (BUILT_IN.test(recipient)) return { kind: "reasoning" };
  }
  return { kind: CHANNEL_NAME.exec(header)?.[1] === "analysis" ? "reasoning" : "text" };
}

const ROLE = /^\s*(?:assistant|user|system|developer|tool)\b/;
/** Kinds of content and grammars, as a header names them. */
const KINDS = ["json", "text", "code", "regex", "lark"];
const KIND = new RegExp(
  `(?:<\\|constrain\\|>\\s*(?:${KINDS.join("|")})?|(?<=^\\s*\\w+\\s+)(?:${KINDS.join("|")})\\b)\\s*`,
);
const CONSTRAIN_AT_END = /<\|constrain\|>\s*(\w+)$/;

/** What a header says that never came to its end, beside channel, recipient and role. `isCut`: the answer ended in it. */
export function textOfHeader(header: string, isCut: boolean): string {
  const at = header.indexOf("<|channel|>");
  const role = header.slice(0, at < 0 ? undefined : at).replace(ROLE, "");
  if (at < 0) return textOfWords(role.replace(RECIPIENT, ""), ["assistant"], isCut);
  const text = role.replace(RECIPIENT, "").trim() === "" ? "" : role.replace(RECIPIENT, "");
  return text + textOfWords(header.slice(at + "<|channel|>".length).replace(RECIPIENT, ""), CHANNELS, isCut);
}

/** What words of a header say beside the first, if that is one of `names`. */
function textOfWords(header: string, names: readonly string[], isCut: boolean): string {
  const kind = isCut ? CONSTRAIN_AT_END.exec(header) : null;
  const isKind = kind !== null && KINDS.some((name) => name.startsWith(kind[1]!));
  const words = isKind ? header.slice(0, kind.index) : header.replace(KIND, "");
  // The begin of a marker that did not come to its end either.
  const whole = isCut ? words.replace(/<(?:\|\w*\|?)?$/, "") : words;
  const [, first, rest] = /^\s*(\S*)([\s\S]*)$/.exec(whole)!;
  if (CHANNELS.includes(first!)) return rest!.trimStart();
  // A single word may be the begin of a channel's name, or of the role.
  if (isCut && rest === "" && names.some((name) => name.startsWith(first!))) return "";
  return words;
}
