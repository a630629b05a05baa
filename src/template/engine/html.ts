/** Markup: text that is safe in HTML, as the package markupsafe has it. */
import { charge, chargeScan, chargeText } from "./limits.ts";
import { split } from "./strings.ts";
import { str } from "./text.ts";
import { Markup, type Value } from "./values.ts";

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
  '"': "&#34;",
};

/** `escape(value)`: Markup stays as it is. */
export function escapeHtml(value: Value): Markup {
  if (value instanceof Markup) return value;
  return new Markup(escapeText(str(value)));
}

export function escapeText(text: string): string {
  chargeText(text.length);
  chargeScan(text.length);
  return text.replace(/[&<>'"]/g, (c) => ENTITIES[c] as string);
}

/** Without tags and comments, spaces collapsed, the usual entities resolved. */
export function stripTags(text: string): string {
  const value = cutOut(cutOut(text, "<!--", "-->"), "<", ">");
  return unescapeHtml(split(value, undefined, -1).join(" "));
}

function cutOut(text: string, open: string, close: string): string {
  let out = "";
  let from = 0;
  for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, from)) {
    charge(1);
    const end = text.indexOf(close, at);
    if (end < 0) break;
    out += text.slice(from, at);
    from = end + close.length;
  }
  return out + text.slice(from);
}

const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  raquo: "»",
  laquo: "«",
  copy: "©",
  reg: "®",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  euro: "€",
};

function unescapeHtml(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w+));?/g,
    (all, decimal?: string, hex?: string, name = "") => {
      if (decimal === undefined && hex === undefined) return all.endsWith(";") ? (NAMED[name] ?? all) : all;
      const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
      return code > 0x10ffff || code === 0 ? "\ufffd" : String.fromCodePoint(code);
    },
  );
}
