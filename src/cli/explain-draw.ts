/** How a terminal shows a choice of a worker: who has which blocks of the prompt, what each has to do, and why one was chosen. */
import type { ReportedCandidate, RouteReport } from "../fleet/explain.ts";

export interface Screen {
  /** Columns. */
  readonly width: number;
  readonly hasColours: boolean;
  /** Characters beyond ASCII can be shown. */
  readonly isUtf8: boolean;
  /** Workers that are drawn. */
  readonly most: number;
}

const LEAST_WIDTH = 40;
const LEAST_LABEL = 12;
const LEAST_BAR = 24;
/** The mark before a label, and the gap behind it. */
const AROUND_LABEL = 4;
const REASONS: Readonly<Record<RouteReport["branch"], string>> = {
  hit: "what it has of the prompt outweighs what it has to do",
  tie: "of those that cost about the same, it has the most of the prompt",
  miss: "none that could take it has a part that counts; it has the least to do",
  balance: "others are passed over, as they have too much to do",
  key: "what has this key, session or length belongs there",
  target: "the request asks for it",
  only: "no other can take the request",
  turn: "by turns, or by chance",
  probe: "its circuit breaker was open, and a request must try it",
  nobody: "",
};

/** Of a block: not there, guessed to be there, told to be there. */
const MISSING = 0;
const GUESSED = 1;
const EXACT = 2;
type Holding = typeof MISSING | typeof GUESSED | typeof EXACT;

const BOLD = "1";
const BETWEEN = "   ";
const COLOURS = ["2", "33", "32"] as const;

/** The whole drawing, with a line end. */
export function drawReport(report: RouteReport, screen: Screen): string {
  if (report.decode === undefined) return drawPart(report, "", screen);
  return `${drawPart(report, "prefill ", screen)}\n${drawPart(report.decode, "decode ", screen)}`;
}

function drawPart(report: RouteReport, part: string, screen: Screen): string {
  const pen = new Pen(screen);
  const able = report.candidates.filter(({ excluded }) => excluded === undefined).sort(order(report.chosen));
  const excluded = report.candidates.filter((one) => one.excluded !== undefined);
  const shown = able.slice(0, screen.most);
  const room = Math.max(LEAST_WIDTH, screen.width);
  const figures = table(report, shown);
  const beside = Math.max(LEAST_BAR, figures[0]?.length ?? 0);
  const labels = shortened([...shown, ...excluded], Math.max(LEAST_LABEL, room - beside - AROUND_LABEL), pen);
  const labelWidth = Math.max(0, ...[...labels.values()].map((text) => text.length));
  const label = (worker: ReportedCandidate): string => {
    const isChosen = worker.id === report.chosen;
    const text = `${isChosen ? ">" : " "} ${labels.get(worker)!.padEnd(labelWidth)}`;
    return isChosen ? pen.paint(text, BOLD) : text;
  };
  const lines = [
    heading(report, part),
    "",
    ...bars(report, shown, label, labelWidth, room, pen),
    ...figures.map((line, i) => (i === 0 ? " ".repeat(labelWidth + AROUND_LABEL) : `${label(shown[i - 1]!)}  `) + line),
  ];
  if (able.length > shown.length) lines.push(`  and ${count(able.length - shown.length, "more worker")}`);
  if (shown.length > 0) lines.push("");
  lines.push(...wrapped(verdict(report), room));
  if (excluded.length > 0)
    lines.push(
      "",
      "Cannot be chosen:",
      ...excluded.slice(0, screen.most).map((worker) => `${label(worker)}  ${clean(worker.excluded ?? "")}`),
    );
  if (excluded.length > screen.most) lines.push(`  and ${excluded.length - screen.most} more`);
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

/** Addresses in at most so many columns: where they are too long, without their schemes; then without their middles. */
function shortened(
  workers: readonly ReportedCandidate[],
  room: number,
  pen: Pen,
): ReadonlyMap<ReportedCandidate, string> {
  const full = workers.map(({ url }) => clean(url));
  const isLong = full.some((url) => url.length > room);
  const texts = isLong ? full.map((url) => pen.cut(url.replace(/^\w+:\/\//, ""), room)) : full;
  return new Map(workers.map((worker, i) => [worker, texts[i]!]));
}

function heading({ model, policy, tokens, blocks, blockSize }: RouteReport, part: string): string {
  const cut = blocks === 0 ? "no whole block" : `${count(blocks, "block")} of ${blockSize}`;
  return `${clean(model)}: ${count(tokens, "token")}, ${cut}; ${part}policy ${clean(policy)}`;
}

function verdict({ candidates, chosen, branch }: RouteReport): string {
  const worker = candidates.find(({ id }) => id === chosen);
  if (worker === undefined) return "Nobody can be chosen.";
  const reason: string | undefined = REASONS[branch]; // a newer gateway may know others
  return `Chosen: ${clean(worker.url)} (${clean(branch)}${reason === undefined ? "" : `: ${reason}`})`;
}

/** The chosen one, then those that come closest to it. */
const order =
  (chosen: string) =>
  (a: ReportedCandidate, b: ReportedCandidate): number =>
    Number(b.id === chosen) - Number(a.id === chosen) ||
    (a.score ?? 0) - (b.score ?? 0) ||
    b.matchedTokens - a.matchedTokens ||
    (clean(a.url) < clean(b.url) ? -1 : 1);

function bars(
  { blocks, spans }: RouteReport,
  workers: readonly ReportedCandidate[],
  label: (worker: ReportedCandidate) => string,
  labelWidth: number,
  room: number,
  pen: Pen,
): string[] {
  if (blocks === 0 || workers.length === 0) return [];
  const most = Math.max(1, room - labelWidth - AROUND_LABEL);
  const columns = blocks >= most ? most : Math.floor(most / blocks) * blocks;
  const end = String(blocks);
  const scale = `${" ".repeat(labelWidth + AROUND_LABEL)}0${end.padStart(Math.max(columns - 1, end.length + 1))}`;
  const rows = workers.map((worker) => {
    const held = holdings(spans, worker.id, blocks, columns);
    return `${label(worker)}  ${pen.bar(held)}`;
  });
  return [scale, ...rows, ...pen.legend(room), ""];
}

/** What a worker holds, by columns: what all blocks of a column are at least; of the first one, what its first block is. */
function holdings(spans: RouteReport["spans"], id: string, blocks: number, columns: number): Holding[] {
  const holding = ({ exact, guessed }: RouteReport["spans"][number]): Holding =>
    exact.includes(id) ? EXACT : guessed.includes(id) ? GUESSED : MISSING;
  const stretches = spans.map((span) => ({ ...span, holding: holding(span) }));
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * blocks) / columns);
    const to = column === 0 ? 1 : Math.max(from + 1, Math.floor(((column + 1) * blocks) / columns));
    let known = 0;
    let least: Holding = EXACT;
    for (const { fromBlock, toBlock, holding } of stretches) {
      const overlap = Math.min(to, toBlock) - Math.max(from, fromBlock);
      if (overlap <= 0) continue;
      known += overlap;
      if (holding < least) least = holding;
    }
    return known < to - from ? MISSING : least; // behind the last span nobody has anything
  });
}

/** Columns of words. */
const LEFT = new Set([1, 6]);

/** Lines of equal length, the first one with the names of the columns. */
function table({ tokens }: RouteReport, workers: readonly ReportedCandidate[]): string[] {
  if (workers.length === 0) return [];
  const hasRoles = workers.some(({ role }) => role !== "regular");
  const head = ["matched", "", "queued", "running", "KV used", "score", ...(hasRoles ? ["role"] : [])];
  const rows = workers.map((worker) => [
    worker.matchedTokens === 0 ? "0" : `${worker.matchedTokens} ${percent(worker.matchedTokens / tokens)}`,
    worker.matchedTokens === 0 ? "" : worker.isExact ? "told" : "guessed",
    String(worker.queuedTokens),
    String(worker.running),
    typeof worker.kvUsage === "number" ? percent(worker.kvUsage) : "-",
    typeof worker.score === "number" ? rounded(worker.score) : "-",
    ...(hasRoles ? [clean(worker.role)] : []),
  ]);
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (LEFT.has(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  ");
  return [head, ...rows].map(line);
}

class Pen {
  private readonly signs: readonly [string, string, string];

  constructor(private readonly screen: Screen) {
    this.signs = screen.isUtf8 ? ["·", "▒", "█"] : [".", "+", "#"];
  }

  paint(text: string, code: string): string {
    return this.screen.hasColours ? `\u001b[${code}m${text}\u001b[0m` : text;
  }

  bar(held: readonly Holding[]): string {
    let out = "";
    for (let from = 0, to = 0; from < held.length; from = to) {
      while (to < held.length && held[to] === held[from]) to++;
      out += this.sign(held[from]!, to - from);
    }
    return out;
  }

  legend(room: number): string[] {
    const said = ["not there", "sent there before", "told by its events"];
    const parts = ([EXACT, GUESSED, MISSING] as const).map((holding) => ({
      text: `${this.sign(holding, 1)} ${said[holding]}`,
      length: said[holding]!.length + 2,
    }));
    const width = parts.reduce((sum, { length }) => sum + length + BETWEEN.length, 0);
    const shown = parts.map(({ text }) => text);
    return (width <= room ? [shown.join(BETWEEN)] : shown).map((line) => `  ${line}`);
  }

  /** A text in so many columns, without its middle if it is too long: workers differ at both ends. */
  cut(text: string, width: number): string {
    if (text.length <= width) return text;
    const dots = this.screen.isUtf8 ? "…" : "..";
    const head = Math.floor((width - dots.length) / 2);
    return text.slice(0, head) + dots + text.slice(text.length - (width - dots.length - head));
  }

  private sign(holding: Holding, times: number): string {
    return this.paint(this.signs[holding].repeat(times), COLOURS[holding]);
  }
}

/** What another program says must not steer the terminal. */
const clean = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, "?");
const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;
const percent = (share: number): string => `${Math.floor(share * 100)}%`;
const rounded = (value: number): string =>
  Math.abs(value) < 100 ? String(Number(value.toFixed(2))) : value.toFixed(0);

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
