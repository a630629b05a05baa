/** All random strings, the corpus whole and in pieces, by kernel and general tokenizer; all hostile texts: `npm run test:exhaustive`. */
import { hostile } from "../golden/tokenizer-real/hostile.ts";
import { exactness } from "../golden/tokenizer-real/suite.ts";

await exactness({ batches: 100, whole: true });
await exactness({ batches: 100, whole: true, general: true });
await hostile({ all: true });
