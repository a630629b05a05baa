/** Compares Collie with SMG: the same cells, by turns, in one run. See docs/benchmarks.md. */

import { parseArgs } from "node:util";
import { bulkGroup, pacedGroup, REST_GROUP } from "../lab/cells.ts";
import { chooseEngine } from "../lab/engine.ts";
import { collie, type GatewayKind } from "../lab/gateways.ts";
import { describeMachine, machineText, othersText, watchOthers } from "../lab/machine.ts";
import { writeResult } from "../lab/output.ts";
import { runProgram } from "../lab/program.ts";
import { runSession } from "../lab/session.ts";
import { compareAll, comparisonTable, type Life, problems, type Side } from "./compare.ts";
import { PeerError, smg } from "./setup.ts";

const HELP = `Compares Collie with SMG on this machine, by turns (A B A B ...).

  npm run bench:peer -- [flags]

  --rounds N         rounds (5; with --quick 2); each measures both gateways, in new processes
  --quick            shorter cells: under 3 minutes
  --engine-cmd CMD   engine of the vLLM dialect instead of \`collie engine\`; {port}, {model} and {gap_ms} are filled in
  --only GROUP       paced, bulk or rest only
  --seed N           prompts (1)
  --beside BINARY    another build of Collie in SMG's place, to see what a change costs; prints only
  --no-write         print only; else bench/results gets a Markdown and a JSON file

$PEERS names a folder with a venv/ where SMG is installed already; without it SMG is installed under .cache/peer.
`;

/** Prompts of the processes that are started once and thrown away. */
const DISCARDED_SEED = 999;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string" },
      quick: { type: "boolean" },
      "engine-cmd": { type: "string" },
      only: { type: "string" },
      seed: { type: "string" },
      beside: { type: "string" },
      "no-write": { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const quick = values.quick === true;
  const rounds = Math.max(1, Number(values.rounds ?? (quick ? 2 : 5)));
  const seed = Number(values.seed ?? 1);
  const groups = [pacedGroup(quick), bulkGroup(quick), ...(quick ? [] : [REST_GROUP])].filter(
    (group) => values.only === undefined || group.id === values.only,
  );
  if (groups.length === 0 || Number.isNaN(rounds + seed)) {
    process.stderr.write(HELP);
    return 2;
  }
  const machine = describeMachine();
  const own = collie();
  const peer = values.beside === undefined ? smg() : { ...collie(values.beside), name: "the other build" };
  const engine = chooseEngine(values["engine-cmd"]);
  const sides: readonly [Side, GatewayKind][] = [
    ["peer", peer],
    ["own", own],
  ];
  // Disk caches, and our tokenizer tables: a start is measured with both at hand.
  for (const [, kind] of sides)
    await runSession(kind, engine, { ...groups[0]!, warmup: [], cells: [] }, DISCARDED_SEED, 0);

  const lives: Life[] = [];
  const started = performance.now();
  const others = watchOthers();
  for (let round = 1; round <= rounds; round++)
    for (const group of groups)
      for (const [side, kind] of sides) {
        console.error(`round ${round} of ${rounds}: ${group.id}, ${kind.name}`);
        const session = await runSession(kind, engine, group, seed * 100 + round, quick ? 2 : 4);
        lives.push({ round, side, group, session });
      }
  const otherCores = others();
  const comparisons = compareAll(lives, groups);
  const doubts = problems(lives);
  const names = { peer: `${peer.name} ${peer.version}`, own: `${own.name} ${own.version}` };
  const text = [
    `# ${names.own} beside ${names.peer}`,
    "",
    `${machineText(machine)} ${othersText(otherCores)}`,
    `${rounds} rounds by turns, a new process for each; engine: ${engine.name}. Figures: median (least–greatest) of the rounds; ratio: ours over the other, round by round. Lower is better.`,
    "",
    comparisonTable(comparisons, names.peer, names.own),
    "",
    ...(doubts.length === 0
      ? ["No request failed, and both gateways sent the same text."]
      : ["Problems:", "", ...doubts.map((d) => `- ${d}`)]),
    "",
  ].join("\n");
  console.log(text);
  console.error(`${((performance.now() - started) / 60_000).toFixed(1)} minutes`);
  if (!values["no-write"] && values.beside === undefined) {
    const data = {
      machine,
      versions: { own: own.version, peer: peer.version },
      engine: engine.name,
      rounds,
      quick,
      seed,
      other_cores: otherCores,
      comparisons,
      problems: doubts,
      lives: lives.map(({ round, side, group, session }) => ({
        round,
        side,
        group: group.id,
        ready_ms: session.readyMs,
        idle: session.idle,
        cells: Object.fromEntries(session.cells),
      })),
    };
    const name = `${machine.date}-peer-smg-${peer.version}${quick ? "-quick" : ""}`;
    console.error(await writeResult(name, text, data));
  }
  return doubts.length === 0 ? 0 : 3;
}

await runProgram(main, PeerError);
