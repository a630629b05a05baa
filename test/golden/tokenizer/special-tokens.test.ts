/** add_bos_token and add_eos_token of tokenizer_config.json beside a tokenizer.json, as transformers has them (make_special_tokens.py). */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";

interface Found {
  readonly post_processor: unknown;
  readonly single: readonly (number | "A")[];
  readonly pair: readonly (number | "A" | "B")[];
}
const read = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(import.meta.dir, name), "utf8")) as Record<string, unknown>;
const golden = read("special-tokens.json") as unknown as {
  readonly classes: readonly (string | null)[];
  readonly flags: readonly object[];
  readonly found: Readonly<Record<string, Found>>;
};
const json = read("small/prepend.json");

test.each(Object.entries(golden.found))("the file's own post-processor counts, whatever tokenizer_config.json says: %s", async (_, found) => {
  for (const tokenizer_class of golden.classes) {
    for (const flags of golden.flags) {
      const config = { bos_token: "<s>", eos_token: "</s>", ...flags, ...(tokenizer_class ? { tokenizer_class } : {}) };
      const files = new Map([
        ["tokenizer.json", Buffer.from(JSON.stringify({ ...json, post_processor: found.post_processor }))],
        ["tokenizer_config.json", Buffer.from(JSON.stringify(config))],
      ]);
      const tokenizer = openTokenizer(await loadTokenizer(files));
      expect(tokenizer.postProcessor).toEqual({ single: found.single, pair: found.pair });
      const text = [...tokenizer.encode("x")];
      const expected = found.single.flatMap((part) => (part === "A" ? text : [part]));
      expect([...tokenizer.encode("x", { addSpecialTokens: true })]).toEqual(expected);
    }
  }
});
