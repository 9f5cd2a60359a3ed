import { Fraction } from './accounting.js';
import { type Bytes } from './bytes.js';
import { type Declaration } from './declaration.js';
import { type Params } from './encode.js';
import { FeatureMap } from './features.js';
import { type Place, type PlanBody } from './plan.js';
import { Reporter } from './statistic.js';
import { Kind, type BodyOf } from './wire.js';
/** Which tasks a device agrees to: the keys of the policy file, with the same meanings. */
export interface Policy {
    tasks?: string[];
    task_hash?: string;
    task_hashes?: string[];
    learner_key?: string;
    stage_key?: string;
    max_epsilon?: number;
    max_delta?: number;
    max_total_epsilon?: number;
    max_total_delta?: number;
    honest_fraction?: string;
    max_rounds_per_user?: number;
    min_cohort?: number;
    own_share?: number;
    max_refunds?: number;
    max_reports?: number;
    allow_plaintext?: boolean;
    forbid_first_use?: boolean;
}
/** Whether the policy itself vouches for the tasks that it lets through. */
export declare const pins: (p: Policy) => boolean;
export type TaskBody = BodyOf<typeof Kind.task>;
export type RoundBody = BodyOf<typeof Kind.round>;
/** What a policy agreed to for one phase. */
export interface PhaseTerms {
    params: Params;
    statistic: number;
    rounds: number;
    epsilon: number;
}
/** A task that a policy agreed to. */
export declare class Agreement {
    private readonly policy;
    readonly task: TaskBody;
    readonly hash: Bytes;
    readonly declaration: Declaration;
    readonly map: FeatureMap;
    readonly reporter: Reporter;
    readonly phases: PhaseTerms[];
    readonly epsilon: number;
    readonly delta: number;
    readonly honest: Fraction;
    readonly plan: PlanBody;
    private readonly repeated;
    /**
     * Decides about a task that was verified under the key that it names. stored is the hash that the device's store pins,
     * undefined before the first task. Throws Refused.
     */
    constructor(policy: Policy, task: TaskBody, hash: Bytes, stored?: Bytes);
    /** Checks the plan against the declaration, which is what people read; returns the honest fraction that is relied upon. */
    private declared;
    /** The epsilon that one task may cost one user. */
    get limit(): number;
    private agree;
    /** The cost of a round with the others of its stint; throws where it is more than the limit. */
    private afford;
    /** What so many participations of one event cost together. */
    cost(times: number): number;
    /** Whether an event may pay for so many participations. */
    affords(times: number): boolean;
    get hasFloors(): boolean;
    /** The most bytes of a report of one user. */
    get bytes(): number;
    /** Decides about a round that was verified under the task's learner key, and returns its place. Throws Refused. */
    round(r: RoundBody, manifest: Bytes, known?: Bytes): Place;
    /** The radius of the declared set. */
    private radius;
    /** Throws for a round that no honest learner announces after another. */
    order(old: RoundBody, r: RoundBody): void;
}
