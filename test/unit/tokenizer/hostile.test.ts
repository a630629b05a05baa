/** The share of the tests on hostile texts that runs with every `npm test`; all of them: test/exhaustive. */
import { hostile } from "../../golden/tokenizer-real/hostile.ts";

await hostile({ all: false });
