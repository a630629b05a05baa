/**
 * The compiled gateway, and the simulated engine, against Python peers on the engines' own gRPC stubs.   npm run test:interop
 *
 * Needs Python 3.10 or newer, and its package index the first time; without them everything is skipped.
 */
import { gatewayBinary, startGateway } from "../engines/servers.ts";
import { answerChecks } from "./answer-checks.ts";
import { interopPython } from "./python.ts";
import { QwenText } from "./qwen-text.ts";
import { requestChecks } from "./request-checks.ts";
import { ScriptedEngine } from "./scripted-engine.ts";
import { simulatorChecks } from "./simulator-checks.ts";
import { Suite } from "./suite.ts";
import { modelChecks, workerChecks } from "./worker-checks.ts";

const TRANSPORTS = ["framing", "grpc-js"];

const python = interopPython();
if (typeof python !== "string") {
  console.log(`skipped: ${python.why}`);
  console.log("interop: 0 passed, 0 failed, 1 skipped");
  process.exit(0);
}

await gatewayBinary();
const suite = new Suite();
const qwen = new QwenText();
for (const transport of TRANSPORTS) {
  suite.under(`[${transport}] `);
  const flags = ["--engine-transport", transport];
  const engine = await ScriptedEngine.start(python);
  try {
    const gateway = await startGateway(engine.url, flags);
    try {
      await modelChecks(suite, gateway.url);
      await answerChecks(suite, engine, gateway.url, qwen);
      await requestChecks(suite, engine, gateway.url, qwen);
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
  await workerChecks(suite, python, flags);
}
suite.under("[simulated engine] ");
const skipped = await simulatorChecks(suite, python);
console.log(`interop: ${suite.passed} passed, ${suite.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(suite.failed === 0 ? 0 : 1);
