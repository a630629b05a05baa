import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where the mortal threads of this process leave their ports; threads share the process id, not the environment. */
export const doorsFolder = join(tmpdir(), `collie-doors-${process.pid}`);
