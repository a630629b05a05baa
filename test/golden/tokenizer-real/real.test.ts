/** The share of the exactness suite that runs with every `npm test`; all of it: test/exhaustive. */
import { exactness } from "./suite.ts";

await exactness({ batches: 10, whole: false });
