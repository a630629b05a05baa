import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const SRC = join(import.meta.dir, "../../../src");

export interface SourceFile {
  /** Path below src/. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Paths below src/ of what it imports, types included. */
  readonly imports: readonly string[];
  /** Those that remain when it runs. */
  readonly runtimeImports: readonly string[];
  /** Packages and node: modules. */
  readonly packages: readonly string[];
}

/** `import ... from "x"`, `export ... from "x"`, `import "x"`, `import("x")`; the first group says whether it is for types only. */
const IMPORTS =
  /\b(?:(import type|export type)\s[^;"]*?from|(?:import|export)\s[^;"(]*?from|import)\s*\(?\s*"([^"]+)"/g;

function read(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), "utf8");
  const code = text.replaceAll(/^\s*(?:\/\/|\*|\/\*).*$/gm, "");
  const found = [...code.matchAll(IMPORTS)].map((match) => ({ types: match[1] !== undefined, name: match[2] ?? "" }));
  const own = found.filter(({ name }) => name.startsWith("."));
  const below = (name: string) => relative(SRC, join(SRC, dirname(path), name));
  return {
    path,
    text,
    lines: text.split("\n").length - 1,
    imports: own.map(({ name }) => below(name)),
    runtimeImports: own.filter(({ types }) => !types).map(({ name }) => below(name)),
    packages: found
      .filter(({ name }) => !name.startsWith("."))
      .map(({ name }) =>
        name
          .split("/")
          .slice(0, name.startsWith("@") ? 2 : 1)
          .join("/"),
      ),
  };
}

/** All TypeScript sources, the kernel's AssemblyScript left out. */
export const sources: readonly SourceFile[] = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".as.ts"))
  .sort()
  .map(read);
