/** Metrics of several programs as those of one. Format: https://prometheus.io/docs/instrumenting/exposition_formats/. */

export interface MetricsPage {
  /** The value of the label that tells its samples from those of others. */
  readonly from: string;
  readonly text: string;
}

interface Family {
  /** HELP and TYPE, as the first page that has them words them. */
  readonly comments: Map<string, string>;
  readonly samples: string[];
}

/** Name, labels without their braces, and value, with its time. What OpenMetrics adds behind a `#` is left out. */
const SAMPLE =
  /^([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+((?:NaN|[+-]?Inf|[+-]?[\d.][\d.e+-]*)(?:[ \t]+-?\d+)?)[ \t]*(?:#.*)?$/i;
const COMMENT = /^#[ \t]+(HELP|TYPE)[ \t]+([a-zA-Z_:][\w:]*)/;

/** Samples of histograms, summaries and OpenMetrics' counters have names of their own. */
const isPart = (sample: string, metric: string): boolean =>
  metric !== "" &&
  sample.startsWith(metric) &&
  /^_(?:bucket|sum|count|total|created)$/.test(sample.slice(metric.length));

/** Each metric in one piece, as the format wants it, with `label` in all samples. Lines that are none of the format are left out. */
export function joinMetrics(pages: readonly MetricsPage[], label: string): string {
  const families = new Map<string, Family>();
  const family = (name: string): Family => {
    let its = families.get(name);
    if (its === undefined) families.set(name, (its = { comments: new Map(), samples: [] }));
    return its;
  };
  for (const { from, text } of pages) {
    const own = `${label}="${from.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
    let current = "";
    for (const line of text.split(/\r?\n/)) {
      const [, kind, name] = COMMENT.exec(line) ?? [];
      if (kind !== undefined && name !== undefined) {
        current = name;
        const { comments } = family(name);
        if (!comments.has(kind)) comments.set(kind, line);
        continue;
      }
      const [, sample, labels = "", rest] = SAMPLE.exec(line) ?? [];
      if (sample === undefined || rest === undefined) continue;
      const others = labels.trim().replace(/,$/, "");
      family(isPart(sample, current) ? current : sample).samples.push(
        `${sample}{${own}${others === "" ? "" : `,${others}`}} ${rest}`,
      );
    }
  }
  return [...families.values()]
    .filter(({ samples }) => samples.length > 0)
    .flatMap(({ comments, samples }) => [comments.get("HELP"), comments.get("TYPE"), ...samples])
    .filter((line) => line !== undefined)
    .map((line) => `${line}\n`)
    .join("");
}
