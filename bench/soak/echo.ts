/** What an engine says that echoes: the prompt's words over and over. */

/** Whether the text is a beginning of the words over and over, each with a space before it. */
export function matchesEcho(text: string, words: readonly string[]): boolean {
  let at = 0;
  for (let i = 0; at < text.length; i++) {
    const word = ` ${words[i % words.length]}`;
    if (!word.startsWith(text.slice(at, at + word.length))) return false;
    at += word.length;
  }
  return true;
}

/** Whether the text is exactly that of so many tokens. */
export function isEcho(text: string, words: readonly string[], tokens: number): boolean {
  let length = 0;
  for (let i = 0; i < tokens; i++) length += 1 + words[i % words.length]!.length;
  return text.length === length && matchesEcho(text, words);
}
