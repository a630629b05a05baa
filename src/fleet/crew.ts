/** Workers of a model that do the same part of the work, as policies see them. */

import { policyOf } from "../routing/policies/index.ts";
import { type Candidate, type Leg, POLICY_NAMES, type Policy, type PolicyName } from "../routing/policy.ts";
import type { RoutingRules } from "./routing.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** A worker, or a rank of one, that may be chosen. */
export class Seat implements Candidate {
  readonly id: string;
  readonly url: string;
  readonly slot: number;
  readonly member: number;
  readonly priority: number;
  readonly cost: number;
  readonly blockSize: number;
  readonly maxRunning: number;
  readonly sendsEvents: boolean;
  readonly zone: string | undefined;

  constructor(
    readonly worker: WorkerEntry,
    blockSize: number,
  ) {
    const { facts } = worker;
    this.id = worker.id;
    this.url = worker.url;
    this.slot = worker.slot;
    this.member = worker.member ?? NO_MEMBER;
    this.priority = worker.priority ?? 50;
    this.cost = worker.cost ?? 1;
    this.blockSize = worker.blockSize ?? blockSize;
    this.maxRunning = facts?.maxRunningRequests ?? 0;
    this.sendsEvents = worker.sendsEvents ?? false;
    this.zone = worker.labels?.["zone"];
  }
}

/** Of a worker that is not in the prefix index. */
export const NO_MEMBER = -1;

export interface Crew {
  /** Id of the model. */
  readonly model: string;
  readonly leg: Leg;
  readonly policy: Policy;
  readonly seats: readonly Seat[];
}

/** Workers of one kind by their part of the work. */
export type Legs = Readonly<Record<Leg, Crew>>;

/** Makes the crews of one thread. Policies are kept through all changes of the fleet: they remember whose turn it is. */
export class Crews {
  private readonly policies = new Map<string, Policy>();

  constructor(private readonly rules: RoutingRules) {}

  /** Of workers of one kind that serve the model: with none, those of a model that has left. */
  legs(model: string, workers: readonly WorkerEntry[] = []): Legs {
    const crew = (leg: Leg) =>
      this.crew(
        model,
        leg,
        workers.filter(({ role = "regular" }) => role === leg),
      );
    return { regular: crew("regular"), prefill: crew("prefill"), decode: crew("decode") };
  }

  /** Its policy is that of the settings, unless the label `policy` of one of its workers names another: the first that does counts. */
  private crew(model: string, leg: Leg, workers: readonly WorkerEntry[]): Crew {
    const { blockSize, policies } = this.rules;
    const named = workers.map(({ labels }) => labels?.["policy"]).find(isPolicy);
    const policy = this.policy(model, leg, named ?? policies[leg]);
    return { model, leg, policy, seats: workers.map((worker) => new Seat(worker, blockSize)) };
  }

  private policy(model: string, leg: Leg, name: PolicyName): Policy {
    const key = `${leg} ${name} ${model}`;
    let policy = this.policies.get(key);
    if (policy === undefined) {
      policy = policyOf(name);
      this.policies.set(key, policy);
    }
    return policy;
  }
}

/** Whatever their part is. */
export const seatsOf = ({ regular, prefill, decode }: Legs): readonly Seat[] => [
  ...regular.seats,
  ...prefill.seats,
  ...decode.seats,
];

const NAMES: ReadonlySet<string> = new Set(POLICY_NAMES);
const isPolicy = (name: string | undefined): name is PolicyName => name !== undefined && NAMES.has(name);
