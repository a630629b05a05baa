/** Characters of numbers and constants: letters, digits, `+ - . _`. */
export function isWord(c: number): boolean {
  return (
    (c >= 97 && c <= 122) ||
    (c >= 48 && c <= 57) ||
    (c >= 65 && c <= 90) ||
    c === 45 ||
    c === 46 ||
    c === 43 ||
    c === 95
  );
}

const CONSTANTS: Readonly<Record<string, string>> = {
  true: "true",
  false: "false",
  null: "null",
  True: "true",
  False: "false",
  None: "null",
};

/** A constant or a number of JSON or Python as JSON; a word that is JSON unchanged; undefined for any other. */
export function wordAsJson(text: string): string | undefined {
  return Object.hasOwn(CONSTANTS, text) ? CONSTANTS[text] : numberAsJson(text);
}

function numberAsJson(text: string): string | undefined {
  const match = /^([+-]?)(\d[\d_]*)?(?:\.(\d*))?([eE][+-]?\d+)?$/.exec(text);
  if (match === null || (match[2] === undefined && !match[3])) return undefined;
  const whole = (match[2] ?? "0").replaceAll("_", "").replace(/^0+(?=\d)/, "");
  const fraction = match[3] === undefined ? "" : `.${match[3] === "" ? "0" : match[3]}`;
  return `${match[1] === "-" ? "-" : ""}${whole}${fraction}${match[4] ?? ""}`;
}

const NUMBER_PREFIX = /^-?(?:(?:0|[1-9]\d*)(?:\.(?:\d+(?:[eE][+-]?\d*)?)?|[eE][+-]?\d*)?)?/;

/** How much of a word can be the begin of a number or a constant of JSON. */
export function wordPrefix(text: string): number {
  let longest = NUMBER_PREFIX.exec(text)![0].length;
  for (const constant of ["true", "false", "null"]) {
    let length = 0;
    while (length < constant.length && text[length] === constant[length]) length++;
    longest = Math.max(longest, length);
  }
  return longest;
}
