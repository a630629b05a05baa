/** All random strings, and the corpus whole and in pieces: `npm run test:exhaustive`. */
import { exactness } from "../golden/tokenizer-real/suite.ts";

await exactness({ batches: 100, whole: true });
