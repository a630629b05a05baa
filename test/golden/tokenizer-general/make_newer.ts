/**
 * Prints the code points where this engine's normal forms and lower case differ from the Rust library's.
 *
 * Run:  python make_characters.py --changes > changes.json && bun make_newer.ts changes.json
 */
import { readFileSync } from "node:fs";

type Changes = Readonly<Record<"NFC" | "NFD" | "NFKC" | "NFKD" | "Lowercase", Record<string, string>>> & {
  readonly marks: readonly number[];
};
const changes = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as Changes;
const marks = new Set(changes.marks);

function* points(): Generator<string> {
  for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) yield String.fromCodePoint(c);
}

const hex = (s: string): string => s.codePointAt(0)!.toString(16);

/** Does the engine change the character, move it among marks, or join it to one before it? */
function newer(s: string): boolean {
  for (const form of ["NFC", "NFD", "NFKC", "NFKD"] as const)
    if (s.normalize(form) !== (changes[form][hex(s)] ?? s)) return true;
  const moved = `\u0345${s}`.normalize("NFD") !== `\u0345${s}`;
  return moved && !marks.has(s.codePointAt(0)!);
}

const inert = new Set([...points()].filter(newer));
// parts of what only the engine composes, unless the library knows them from elsewhere
const known = new Set(Object.values(changes.NFD).flatMap((s) => [...s]));
for (const s of [...inert]) {
  if (changes.NFD[hex(s)] !== undefined) continue;
  for (const p of s.normalize("NFD")) if (!known.has(p) && !marks.has(p.codePointAt(0)!)) inert.add(p);
}

function ranges(found: Iterable<string>): string {
  const codes = [...found].map((s) => s.codePointAt(0)!).sort((a, b) => a - b);
  const out: string[] = [];
  for (let i = 0; i < codes.length; ) {
    let j = i;
    while (codes[j + 1] === codes[j]! + 1) j++;
    out.push((i === j ? [codes[i]!] : [codes[i]!, codes[j]!]).map((c) => c.toString(16).toUpperCase()).join("-"));
    i = j + 1;
  }
  return out.join(" ");
}

console.log("INERT", inert.size, ranges(inert));
const lower = [...points()].filter((s) => s.toLowerCase() !== (changes.Lowercase[hex(s)] ?? s));
console.log("LOWER", lower.length, ranges(lower), lower.map((s) => changes.Lowercase[hex(s)]));
