/** The filter `urlize`: web and mail addresses of a text become links, everything else is escaped. */
import { ChatTemplateError } from "../errors.ts";
import { escapeHtml } from "./html.ts";
import { charge } from "./limits.ts";
import { asIndex } from "./numbers.ts";
import { codePoints, listOf, textLength } from "./sequences.ts";
import { countOf, split } from "./strings.ts";
import { str } from "./text.ts";
import { truthy, type Value } from "./values.ts";
import { SPACE_CLASS } from "./whitespace.ts";

const WORD = "\\p{L}\\p{N}_";
const HOST = `(?:https?://|www\\.)(?:[${WORD}%-]+\\.)*(?:[a-z]{2,63}|xn--[${WORD}%]{2,59})`;
const KNOWN_HOST = `(?:[${WORD}%-]{2,63}\\.)+(?:com|net|int|edu|gov|org|info|mil)`;
const ADDRESS = "https?://(?:\\d{1,3}(?:\\.\\d{1,3}){3}|\\[(?:[\\da-f]{0,4}:){2}(?:[\\da-f]{0,4}:?){1,6}\\])";
const URL_WORD = new RegExp(`^(?:${HOST}|${KNOWN_HOST}|${ADDRESS})(?::\\d{1,5})?(?:[/?#][^${SPACE_CLASS}]*)?$`, "iu");
const MAIL = new RegExp(`^[^${SPACE_CLASS}]+@[${WORD}][${WORD}.-]*\\.[${WORD}]+$`, "u");
const SPACES = new RegExp(`([${SPACE_CLASS}]+)`);
const SCHEME = new RegExp(`^[${WORD}.+-]{2,}:/{0,2}$`, "u");
/** Longer words are no links: the patterns above are not linear. */
const MAX_WORD = 2048;
const BRACKETS = [
  ["(", ")"],
  ["<", ">"],
  ["&lt;", "&gt;"],
] as const;

export function urlize(text: Value, limit: Value, nofollow: Value, target: Value, rel: Value, schemes: Value): string {
  const relations = new Set([...split(rel === null ? "" : str(rel), undefined, -1), "noopener"]);
  if (truthy(nofollow)) relations.add("nofollow");
  const attributes =
    attribute("rel", [...relations].sort().join(" ")) + (truthy(target) ? attribute("target", str(target)) : "");
  const extra = schemes === null ? [] : listOf(schemes).map(str);
  for (const scheme of extra)
    if (!SCHEME.test(scheme)) throw new ChatTemplateError(`'${scheme}' is not a valid URI scheme prefix.`);
  const shown = (url: string): string => {
    const most = limit === null ? Infinity : asIndex(limit);
    return textLength(url) > most ? `${codePoints(url).slice(0, most).join("")}...` : url;
  };
  const words = escapeHtml(text).text.split(SPACES);
  return words.map((word) => around(word, (middle) => link(middle, attributes, extra, shown))).join("");
}

const attribute = (name: string, value: string): string => ` ${name}="${escapeHtml(value).text}"`;

/** Applies it to a word without the brackets and stops around it. */
function around(word: string, make: (middle: string) => string): string {
  charge(4 + word.length);
  if (word.length > MAX_WORD) return word;
  const head = /^(?:[(<]|&lt;)+/.exec(word)?.[0] ?? "";
  let middle = word.slice(head.length);
  let tail = /(?:[)>.,\n]|&gt;)+$/.exec(middle)?.[0] ?? "";
  middle = middle.slice(0, middle.length - tail.length);
  // brackets that are opened inside of the address are closed there, too
  for (const [open, close] of BRACKETS) {
    const opened = countOf(middle, open);
    if (opened <= countOf(middle, close)) continue;
    for (let left = Math.min(opened, countOf(tail, close)); left > 0; left--) {
      const end = tail.indexOf(close) + close.length;
      middle += tail.slice(0, end);
      tail = tail.slice(end);
    }
  }
  return head + make(middle) + tail;
}

function link(word: string, attributes: string, schemes: readonly string[], shown: (url: string) => string): string {
  if (URL_WORD.test(word)) {
    const url = /^https?:\/\//.test(word) ? word : `https://${word}`;
    return `<a href="${url}"${attributes}>${shown(word)}</a>`;
  }
  if (word.startsWith("mailto:") && MAIL.test(word.slice(7))) return `<a href="${word}">${word.slice(7)}</a>`;
  if (!/^(?:www\.|@)/.test(word) && !word.includes(":") && MAIL.test(word))
    return `<a href="mailto:${word}">${word}</a>`;
  let linked = word;
  for (const scheme of schemes)
    if (linked !== scheme && linked.startsWith(scheme)) linked = `<a href="${linked}"${attributes}>${linked}</a>`;
  return linked;
}
