/** Workers of a model that do the same part of the work, as policies see them. */

import { POLICY_NAMES } from "../config/policy-names.ts";
import { policyOf } from "../routing/policies/index.ts";
import type { Candidate, Leg, Policy, PolicyName } from "../routing/policy.ts";
import type { RoutingRules } from "./routing.ts";
import { engineKind, type WorkerEntry } from "./snapshot.ts";

/** A worker, or a rank of one, that may be chosen. */
export class Seat implements Candidate {
  readonly id: string;
  /** Of a rank it is `URL@RANK`, as SMG writes it: what goes by addresses tells ranks apart. */
  readonly url: string;
  readonly slot: number;
  readonly member: number;
  readonly priority: number;
  readonly cost: number;
  readonly blockSize: number;
  readonly maxRunning: number;
  readonly sendsEvents: boolean;
  readonly cacheModel: string;
  readonly cacheLora: string | undefined;
  readonly zone: string | undefined;

  constructor(
    readonly worker: WorkerEntry,
    blockSize: number,
  ) {
    const { facts, rank } = worker;
    this.id = worker.id;
    this.url = rank === undefined ? worker.url : `${worker.url}@${rank}`;
    this.slot = worker.slot;
    this.member = worker.member ?? NO_MEMBER;
    this.priority = worker.priority ?? 50;
    this.cost = worker.cost ?? 1;
    this.blockSize = worker.blockSize ?? blockSize;
    this.maxRunning = facts?.maxRunningRequests ?? 0;
    this.sendsEvents = worker.sendsEvents ?? false;
    this.cacheModel = worker.cacheName?.model ?? worker.model;
    this.cacheLora = worker.cacheName?.lora;
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
  /** Workers that are spoken to in another way serve the model, too. */
  readonly hasPeers: boolean;
}

/** Workers of one kind by their part of the work. */
export interface Legs extends Readonly<Record<Leg, Crew>> {
  /** Why workers that do a part of the work are of no use; undefined where there are none, or they are. */
  readonly gap: string | undefined;
}

/** Makes the crews of one thread. Policies are kept through all changes of the fleet: they remember whose turn it is. */
export class Crews {
  private readonly policies = new Map<string, Policy>();

  constructor(private readonly rules: RoutingRules) {}

  /** Of workers of one kind that serve the model: with none, those of a model that has left. */
  legs(model: string, workers: readonly WorkerEntry[] = [], hasPeers = false): Legs {
    const crew = (leg: Leg): Crew => ({
      ...this.crew(
        model,
        leg,
        workers.filter(({ role = "regular" }) => role === leg),
      ),
      hasPeers,
    });
    const [prefill, decode] = [crew("prefill"), crew("decode")];
    return {
      regular: crew("regular"),
      prefill: paired(prefill, decode),
      decode: paired(decode, prefill),
      gap: gapOf(prefill, decode),
    };
  }

  /** Its policy is that of the settings, unless the label `policy` of one of its workers names another: the first that does counts. */
  private crew(model: string, leg: Leg, workers: readonly WorkerEntry[]): Omit<Crew, "hasPeers"> {
    const { blockSize, policies } = this.rules;
    const named = workers.map(({ labels }) => labels?.["policy"]).find(isPolicy);
    const policy = this.policy(model, leg, named ?? policies[leg]);
    return { model, leg, policy, seats: workers.map((worker) => new Seat(worker, blockSize)) };
  }

  /** Workers that are spoken to in two ways, to choose among all of them. */
  both(one: Crew, other: Crew): Crew {
    if (one.seats.length === 0 || other.seats.length === 0) return one.seats.length === 0 ? other : one;
    const { model, policy } = one;
    const leg = one.leg === other.leg ? one.leg : "regular";
    const seats = [...one.seats, ...other.seats];
    return { model, leg, policy: this.policy(model, `both ${leg}`, policy.name), seats, hasPeers: false };
  }

  private policy(model: string, leg: Leg | `both ${Leg}`, name: PolicyName): Policy {
    const key = `${leg} ${name} ${model}`;
    let policy = this.policies.get(key);
    if (policy === undefined) {
      policy = policyOf(name);
      this.policies.set(key, policy);
    }
    return policy;
  }
}

const kindsOf = ({ seats }: Crew): ReadonlySet<string> => new Set(seats.map(({ worker }) => engineKind(worker)));

/** Those that have somebody to share a request with: engines of two kinds cannot. */
function paired(crew: Crew, others: Crew): Crew {
  const kinds = kindsOf(others);
  return { ...crew, seats: crew.seats.filter(({ worker }) => kinds.has(engineKind(worker))) };
}

function gapOf(prefill: Crew, decode: Crew): string | undefined {
  const [first, second] = [kindsOf(prefill), kindsOf(decode)];
  if (first.size === 0 && second.size === 0) return undefined;
  if (second.size === 0) return "it has workers that prefill, and none that decodes";
  if (first.size === 0) return "it has workers that decode, and none that prefills";
  if ([...first].some((kind) => second.has(kind))) return undefined;
  return `those that prefill (${[...first].join(", ")}) and those that decode (${[...second].join(", ")}) are different engines`;
}

/** Whatever their part is. */
export const seatsOf = ({ regular, prefill, decode }: Legs): readonly Seat[] => [
  ...regular.seats,
  ...prefill.seats,
  ...decode.seats,
];

const NAMES: ReadonlySet<string> = new Set(POLICY_NAMES);
const isPolicy = (name: string | undefined): name is PolicyName => name !== undefined && NAMES.has(name);
