import { describe, expect, test } from "bun:test";
import { type Form, normalForm } from "../../../../src/tokenizer/general/normal-forms.ts";
import { Rng } from "../../../golden/tokenizer/strings.ts";

const FORMS: readonly Form[] = ["NFC", "NFD", "NFKC", "NFKD"];
/** Characters whose normal forms are the same in all versions of Unicode. */
const MARKS = [
  ..."\u0300\u0301\u0302\u0307\u0308\u030a\u0327\u0323\u0334\u0345\u05b0\u05b4\u064b\u0f71\u0f72\u3099\u0344\u0653",
];
const OTHERS = [
  ..."aeoAO\u00e9\u1ec7\u00c5\u212b\u1100\u1161\u11a8\uac00\u304b\uff76\uff9e\u09c7\u09be\u09d7\u1025\u102e\ufb01\u00bd\u0f73",
];

describe("runs of many marks", () => {
  test.each(FORMS)("%s equals the engine's", (form) => {
    const rng = new Rng(1);
    for (let k = 0; k < 300; k++) {
      let text = "";
      for (let n = 1 + rng.below(6); n > 0; n--) {
        text += rng.pick(OTHERS);
        for (let m = rng.below(2) === 0 ? 60 + rng.below(80) : rng.below(4); m > 0; m--) text += rng.pick(MARKS);
      }
      expect(normalForm(form, text)).toBe(text.normalize(form));
    }
  });
});

test("characters newer than the library's tables stay where they are", () => {
  // a mark of Unicode 14 between marks of other classes, and a letter of Unicode 16 that the engine composes
  expect(normalForm("NFD", "a\u0301\u08d0\u0323")).toBe("a\u0301\u08d0\u0323");
  expect(normalForm("NFC", "\u{105d2}\u0307")).toBe("\u{105d2}\u0307");
  expect(normalForm("NFKC", "\ua7f2\uff21")).toBe("\ua7f2A");
  expect("\ua7f2".normalize("NFKC")).not.toBe("\ua7f2");
});
