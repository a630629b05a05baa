/** Which worker gets a request. */

import { NoWorkersError, TargetWorkerError } from "../errors.ts";
import type { RouteAsk } from "../routing/ask.ts";
import type { Branch, Choice, PolicyContext } from "../routing/policy.ts";
import { BoardLoad } from "./board-load.ts";
import { Candidates, unsupported } from "./candidates.ts";
import { type Crew, NO_MEMBER, type Seat } from "./crew.ts";
import type { EnginePool } from "./engine-pool.ts";
import { type RouteReport, reportOf } from "./explain.ts";
import type { ChoiceNote, LeaseAsk } from "./lease.ts";
import { LonePrompts } from "./lone-prompts.ts";
import { Place, type Surroundings } from "./place.ts";
import type { Routing } from "./routing.ts";
import type { WorkerEntry } from "./snapshot.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Branches of a policy that any of several workers might have come from: none has the prompt, or all that do are alike. */
const OPEN: ReadonlySet<Branch> = new Set(["tie", "miss", "turn"]);

/** Chooses by the board for one thread. */
export class WorkerChoice {
  private readonly load: BoardLoad;
  private readonly candidates: Candidates;
  private readonly context: Mutable<PolicyContext>;
  private readonly lone = new LonePrompts();
  private crew: Crew | undefined;

  constructor(
    private readonly around: Surroundings,
    private readonly routing: Routing,
  ) {
    const { board, observer } = around;
    this.load = new BoardLoad(board);
    this.candidates = new Candidates(board);
    const { index, sticky, settings } = routing;
    this.context = {
      model: "",
      leg: "regular",
      load: this.load,
      index,
      sticky,
      settings,
      now: 0,
      random: () => Math.random(),
      count: (branch) => observer.branched(this.crew!.policy.name, branch),
    };
  }

  /**
   * Books a place there. `zone`: where workers are alike, one with this label is preferred. Throws UnsupportedError where no worker ever
   * can do what is asked, NoWorkersError where none can now.
   */
  book<E extends { close(): void }>(crew: Crew, ask: LeaseAsk, engines: EnginePool<E>, zone?: string): Place<E> {
    const { board, thread, clock, observer } = this.around;
    const { tokens = ask.route?.tokens ?? 0 } = ask;
    for (;;) {
      const now = clock.now();
      const started = performance.now();
      this.look(crew, ask, now);
      const probe = this.probe(ask, now);
      const choice = probe === undefined ? this.choose(crew, ask, tokens, now, zone) : undefined;
      const seat = probe ?? choice!.worker;
      const { worker, slot } = seat;
      let engine: E;
      try {
        engine = engines.get(worker);
      } catch (error) {
        if (probe !== undefined) board.breaker.probed(slot, thread, "neutral", now);
        throw error;
      }
      const predictedTokens = choice?.matchedTokens ?? 0;
      const booked = Math.max(0, tokens - predictedTokens);
      if (!board.book(slot, thread, booked, now)) continue;
      if (choice !== undefined) this.promise(choice, now);
      if (crew.seats.length === 1 && !crew.hasPeers) this.lone.keep(crew, seat, ask.route, now);
      const note: ChoiceNote = {
        policy: crew.policy.name,
        branch: choice?.branch ?? "probe",
        predictedTokens,
        isExact: choice?.isExact ?? false,
        promptTokens: ask.route?.tokens ?? tokens,
      };
      observer.chosen(worker, note, (performance.now() - started) / 1000);
      return new Place(this.around, worker, engine, booked, note, ask.trace);
    }
  }

  /** What `book` would do, told in full; nothing is booked, and nothing changes. Throws UnsupportedError. */
  explain(crew: Crew, ask: LeaseAsk, zone?: string): RouteReport {
    const { board, clock } = this.around;
    const { candidates, load } = this;
    const now = clock.now();
    const route = ask.route ?? { tokens: ask.tokens ?? 0 };
    this.look(crew, ask, now);
    const probe = this.wantsProbe(ask)
      ? candidates.broken.find(({ slot }) => board.breaker.waitMs(slot, now) === 0)
      : undefined;
    const isOpen = probe === undefined && candidates.closed.length > 0;
    const found = isOpen ? crew.policy.choose(candidates.closed, route, this.contextOf(crew, now), true) : undefined;
    load.now = now;
    return reportOf({
      crew,
      route,
      choice: found === undefined || zone === undefined ? found : this.nearest(found, zone),
      probe,
      load,
      index: this.routing.index,
      now,
      stateOf: ({ slot }) => candidates.stateOf(slot),
      excluded: (seat) => (seat === probe ? undefined : candidates.excluded(seat, ask)),
    });
  }

  /** The one that would get a request now; nothing is booked, and nothing changes. Undefined: none can take one. */
  next(crew: Crew, route: RouteAsk): WorkerEntry | undefined {
    const { candidates } = this;
    const now = this.around.clock.now();
    candidates.sort(crew.seats, {}, now);
    const { closed, broken } = candidates;
    if (closed.length < 2) return (closed[0] ?? broken[0])?.worker;
    return crew.policy.choose(closed, route, this.contextOf(crew, now), true).worker.worker;
  }

  /** Sorts the workers of a crew into those that can take the request, and the rest. */
  private look(crew: Crew, ask: LeaseAsk, now: number): void {
    const { candidates } = this;
    if (crew.seats.length > 1 || crew.hasPeers) this.lone.pour(crew, this.routing.index, () => this.around.clock.now());
    candidates.sort(crew.seats, ask, now);
    if (!candidates.isAble && crew.seats.length > 0) throw unsupported(crew.model, crew.seats, ask.needs ?? 0);
    if (ask.route?.target !== undefined) candidates.aim(ask.route.target, crew.leg);
  }

  /**
   * A worker that is tried after its circuit breaker was open. Such a try comes first, as there is one at a time, but is not made with a
   * request that has failed elsewhere.
   */
  private wantsProbe({ tried }: LeaseAsk): boolean {
    const { broken, closed } = this.candidates;
    return broken.length > 0 && (closed.length === 0 || tried === undefined || tried.size === 0);
  }

  private probe(ask: LeaseAsk, now: number): Seat | undefined {
    if (!this.wantsProbe(ask)) return undefined;
    const { board, thread } = this.around;
    for (const seat of this.candidates.broken) if (board.breaker.tryProbe(seat.slot, thread, now)) return seat;
    return undefined;
  }

  private choose(crew: Crew, ask: LeaseAsk, tokens: number, now: number, zone: string | undefined): Choice<Seat> {
    const { closed } = this.candidates;
    const route: RouteAsk = ask.route ?? { tokens };
    if (closed.length === 0) throw this.nobody(crew, route, now);
    const choice = crew.policy.choose(closed, route, this.contextOf(crew, now));
    return zone === undefined ? choice : this.nearest(choice, zone);
  }

  private contextOf(crew: Crew, now: number): PolicyContext {
    this.crew = crew;
    this.load.now = now;
    const { context } = this;
    context.model = crew.model;
    context.leg = crew.leg;
    context.hasOthers = crew.hasPeers || crew.seats.length > this.candidates.closed.length;
    context.now = now;
    return context;
  }

  /** One of the zone that has as little to do, where the choice was open. */
  private nearest(choice: Choice<Seat>, zone: string): Choice<Seat> {
    const { worker } = choice;
    if (worker.zone === zone || choice.matchedTokens > 0 || !OPEN.has(choice.branch)) return choice;
    const { load } = this;
    for (const other of this.candidates.closed) {
      if (other.zone !== zone || other.priority < worker.priority) continue;
      if (load.running(other) <= load.running(worker) && load.queuedTokens(other) <= load.queuedTokens(worker))
        return { ...choice, worker: other, branch: "tie" };
    }
    return choice;
  }

  private promise({ worker, matchedTokens, chain }: Choice<Seat>, now: number): void {
    if (chain === undefined || worker.member === NO_MEMBER) return;
    this.routing.index.promise(chain, Math.floor(matchedTokens / chain.blockSize), worker.member, now);
  }

  private nobody({ model, leg }: Crew, { target }: RouteAsk, now: number): NoWorkersError | TargetWorkerError {
    if (target !== undefined && leg === "regular") return new TargetWorkerError(target);
    const { breaker } = this.around.board;
    let wait = Number.POSITIVE_INFINITY;
    for (const { slot } of this.candidates.broken) wait = Math.min(wait, breaker.waitMs(slot, now));
    return new NoWorkersError(model, Number.isFinite(wait) ? Math.max(1, Math.ceil(wait / 1000)) : 1);
  }
}
