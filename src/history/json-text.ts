/** Parts of JSON texts, cut out as they stand: parsing and printing again would change numbers. The texts are valid JSON. */

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const COLON = 58;

const isOpen = (char: number): boolean => char === 123 || char === 91;
const isClose = (char: number): boolean => char === 125 || char === 93;

/** Index behind the string that begins at `from`. */
function endOfString(text: string, from: number): number {
  let at = from + 1;
  for (let char = text.charCodeAt(at); char !== QUOTE && at < text.length; char = text.charCodeAt(++at))
    if (char === BACKSLASH) at++;
  return at + 1;
}

/** Calls `part` with the bounds of what lies between the commas and colons of the outermost array or object. */
function eachPart(text: string, part: (from: number, to: number, ending: number) => void): void {
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at) - 1;
    else if (isOpen(char)) {
      if (depth++ === 0) from = at + 1;
    } else if (isClose(char)) {
      if (--depth === 0) part(from, at, char);
    } else if (depth === 1 && (char === COMMA || char === COLON)) {
      part(from, at, char);
      from = at + 1;
    }
  }
}

/** The elements of an array, as texts; none for what is no array. */
export function arrayTexts(text: string): string[] {
  const found: string[] = [];
  if (!text.trimStart().startsWith("[")) return found;
  eachPart(text, (from, to) => {
    const element = text.slice(from, to).trim();
    if (element !== "") found.push(element);
  });
  return found;
}

export function arrayOfTexts(texts: readonly string[]): string {
  return `[${texts.join(",")}]`;
}

/** The member `name` of an object, as text; undefined where it has none. */
export function memberText(text: string, name: string): string | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  const key = JSON.stringify(name);
  let wanted = false;
  let found: string | undefined;
  eachPart(text, (from, to, ending) => {
    if (ending === COLON) wanted = text.slice(from, to).trim() === key;
    else if (wanted) found = text.slice(from, to).trim();
  });
  return found;
}

/** The `id` of an item; "" where it has none. */
export function idOf(item: string): string {
  const id = memberText(item, "id");
  if (id === undefined || !id.startsWith('"')) return "";
  return JSON.parse(id) as string;
}
