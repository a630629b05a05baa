/**
 * A text that a regular expression matches in full, or undefined when none was found. Understands literals, escapes, classes,
 * groups, alternatives (the first is taken) and quantifiers (the least count, but one for `*`).
 */
export function regexText(pattern: string): string | undefined {
  const parser = new Parser(pattern.replace(/^\^|\$$/g, ""));
  const text = parser.alternatives();
  if (text === undefined || !parser.done) return undefined;
  return matches(pattern, text) ? text : undefined;
}

/** In Unicode where the pattern allows; engines also take escapes of characters that need none, such as `\-`, which JavaScript does not there. */
function matches(pattern: string, text: string): boolean {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(`^(?:${pattern})$`, flags).test(text);
    } catch {
      // not in this syntax
    }
  }
  return false;
}

const ESCAPES: Readonly<Record<string, string>> = {
  d: "7",
  w: "a",
  s: " ",
  n: "\n",
  t: "\t",
  r: "\r",
  D: "a",
  W: " ",
  S: "a",
};
const NEGATED_CANDIDATES = "a1 _-.\n";

class Parser {
  private at = 0;

  constructor(private readonly pattern: string) {}

  get done(): boolean {
    return this.at >= this.pattern.length;
  }

  alternatives(): string | undefined {
    const first = this.sequence();
    while (this.peek() === "|") {
      this.at++;
      if (this.sequence() === undefined) return undefined;
    }
    return first;
  }

  private sequence(): string | undefined {
    let text = "";
    while (!this.done && this.peek() !== "|" && this.peek() !== ")") {
      const atom = this.atom();
      if (atom === undefined) return undefined;
      text += atom.repeat(this.count());
    }
    return text;
  }

  private atom(): string | undefined {
    const char = this.pattern[this.at++];
    switch (char) {
      case "(": {
        if (this.pattern.startsWith("?:", this.at)) this.at += 2;
        else if (this.peek() === "?") return undefined;
        const text = this.alternatives();
        return this.pattern[this.at++] === ")" ? text : undefined;
      }
      case "[":
        return this.characterClass();
      case "\\":
        return this.escape();
      case ".":
        return "a";
      case "^":
      case "$":
        return "";
      default:
        return char;
    }
  }

  private escape(): string | undefined {
    const char = this.pattern[this.at++];
    if (char === undefined || /[bBkpPux0-9c]/.test(char)) return undefined;
    return ESCAPES[char] ?? char;
  }

  private characterClass(): string | undefined {
    const end = this.classEnd();
    if (end < 0) return undefined;
    const source = this.pattern.slice(this.at - 1, end + 1);
    const negated = this.peek() === "^";
    this.at += negated ? 1 : 0;
    let first = this.peek();
    if (first === "\\") {
      this.at++;
      first = this.escape();
    }
    this.at = end + 1;
    if (!negated) return first;
    return [...NEGATED_CANDIDATES].find((candidate) => new RegExp(source).test(candidate));
  }

  private classEnd(): number {
    for (let i = this.at; i < this.pattern.length; i++) {
      if (this.pattern[i] === "\\") i++;
      else if (this.pattern[i] === "]") return i;
    }
    return -1;
  }

  /** Reads a quantifier, if there is one. */
  private count(): number {
    const quantifier = /^(?:[*+?]|\{(\d+)(?:,\d*)?\})[?+]?/.exec(this.pattern.slice(this.at));
    if (!quantifier) return 1;
    this.at += quantifier[0].length;
    return quantifier[1] === undefined ? 1 : Number(quantifier[1]);
  }

  private peek(): string | undefined {
    return this.pattern[this.at];
  }
}
