import { type EngineFaultKind, isEngineFault, matches, type ScriptFault, type ScriptRule } from "./rule.ts";

/** A rule and how often it has applied. */
export interface RuleUse {
  readonly rule: ScriptRule;
  uses: number;
}

/** What a prompt without a rule of the script gets under a fault that was set at run time. */
const BARE: ScriptRule = {
  pattern: undefined,
  text: undefined,
  tokenIds: undefined,
  chunkSizes: [],
  finishReason: undefined,
  logprobs: undefined,
  delayMs: 0,
  tokenIntervalMs: 0,
  fault: undefined,
  times: Number.POSITIVE_INFINITY,
  probability: 1,
};

/** The rules of a script and the faults set at run time, with what they have done so far. */
export class RuleBook {
  private readonly scripted: readonly RuleUse[];
  private live: RuleUse[] = [];

  constructor(
    rules: readonly ScriptRule[],
    private readonly random: () => number = Math.random,
  ) {
    this.scripted = rules.map((rule) => ({ rule, uses: 0 }));
  }

  /** Sets a fault; it comes before those set earlier, and before the faults of the script. */
  add(rule: ScriptRule): void {
    this.live.unshift({ rule, uses: 0 });
  }

  /** Forgets the faults set at run time. */
  clear(): void {
    this.live = [];
  }

  /** Faults set at run time, the latest first. */
  get faults(): readonly RuleUse[] {
    return this.live;
  }

  /** What applies to a prompt, counted as used: the script's rule, with the delay and the fault of one set at run time. */
  take(promptText: () => string): ScriptRule | undefined {
    if (this.scripted.length === 0 && this.live.length === 0) return undefined;
    let text: string | undefined;
    const applies = (rule: ScriptRule) => {
      if (rule.fault && isEngineFault(rule.fault.kind)) return false;
      if (rule.pattern !== undefined) text ??= promptText();
      return matches(rule, text ?? "");
    };
    const rule = this.use(this.scripted, applies);
    const live = this.use(this.live, applies);
    if (!live) return rule;
    const base = rule ?? BARE;
    return { ...base, delayMs: live.delayMs || base.delayMs, fault: live.fault ?? base.fault };
  }

  /** A fault of the engine itself, when its occasion has come; counted as used. */
  takeOf(kind: EngineFaultKind): ScriptFault | undefined {
    if (this.scripted.length === 0 && this.live.length === 0) return undefined;
    const isOne = ({ fault }: ScriptRule) => fault?.kind === kind;
    return (this.use(this.live, isOne) ?? this.use(this.scripted, isOne))?.fault;
  }

  private use(list: readonly RuleUse[], applies: (rule: ScriptRule) => boolean): ScriptRule | undefined {
    for (const entry of list) {
      const { rule } = entry;
      if (entry.uses >= rule.times || !applies(rule)) continue;
      if (rule.probability < 1 && this.random() >= rule.probability) continue;
      entry.uses++;
      return rule;
    }
    return undefined;
  }
}

/** Whether a fault breaks its request off, or leaves it to go on. */
export function isFinal(fault: ScriptFault): boolean {
  if (isEngineFault(fault.kind)) return false;
  switch (fault.kind) {
    case "freeze":
    case "garble":
    case "double":
    case "oversize":
    case "transfer-slow":
    case "transfer-fail":
      return false;
    case "goaway":
      return fault.code !== 0;
    default:
      return true;
  }
}
