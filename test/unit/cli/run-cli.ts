// The program as the tests of the command line start it.
import { runCli } from "../../../src/cli/main.ts";

process.exitCode = await runCli(process.argv.slice(2), process.env);
