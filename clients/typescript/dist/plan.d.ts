import type { Fraction, Release } from './accounting.js';
import type { Params } from './encode.js';
import { type Bodied, type Mechanism, type Phase, type Plan } from './wire.js';
export type PlanBody = Bodied<typeof Plan>;
export type PhaseBody = Bodied<typeof Phase>;
/** Phases that the same users answer one after the other: what each of them pays is the cost of all. */
export interface Stint {
    index: number;
    phases: number;
    first: bigint;
    last: bigint;
    rounds: number;
}
/** A place is a step of a plan, and what the plan fixes of its round. */
export interface Place {
    phase: PhaseBody;
    index: number;
    first: bigint;
    cohort: bigint;
    planned: bigint;
    stint: Stint;
}
export declare function stintOf(plan: PlanBody, phase: number): Stint;
/** The place of a step, from 1; null where the plan does not have it. */
export declare function placeOf(plan: PlanBody, step: bigint): Place | null;
/** The place of the costliest round of a phase. */
export declare const costliest: (plan: PlanBody, index: number) => Place;
/** The randomizer's parameters of a mechanism; throws for one that cannot be run. */
export declare function paramsOf(m: Bodied<typeof Mechanism>): Params;
/** What a user pays for a round together with all others of its stint: one release for each phase. */
export declare function releases(plan: PlanBody, at: Place, honest: Fraction): Release[];
/** Throws unless a plan can be run. */
export declare function checkPlan(plan: PlanBody): void;
