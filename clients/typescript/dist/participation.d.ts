import { type Bytes } from './bytes.js';
/** Fresh: has not taken part. Charged: has, and the outcome is not known. Counted and unknown are final, but in an interactive phase. */
export type State = 'fresh' | 'charged' | 'counted' | 'uncounted' | 'unknown';
/** One opening of a round: its number, and the hash of the body of its Open, in hexadecimal. */
export interface AttemptId {
    number: number;
    open: string;
}
/** The publishes for one attempt, which all carry the same message id. */
export interface Send {
    attempt: AttemptId;
    sent: number;
    acked: number;
    refused: number;
    lowest: number;
}
/** An event's report in one round. Its counts are never stored: the sealed message is. */
export interface Draw {
    round: number;
    phase: number;
    step: number;
    most: number;
    final: boolean;
    manifest: string;
    report: Bytes;
}
/** What a broker answered to one publish. */
export type Ack = {
    status: 'stored' | 'duplicate';
    sequence: number;
} | {
    status: 'refused';
    reason: number;
} | {
    status: 'unknown';
};
/** A Close that was verified, with the Open that stands beside it. */
export interface Closed {
    round: number;
    attempt: AttemptId;
    manifest: string;
    cutoff: number;
    void: boolean;
}
export declare const attemptOf: (number: bigint, openHash: Bytes) => AttemptId;
/** The participation of one event; plain data, so that a store keeps it as it is. */
export interface Participation {
    key: string;
    state: State;
    draw: Draw | null;
    sends: Send[];
    before: State;
    rounds: number;
    refunds: number;
    reports: number;
    sealed: Bytes | null;
}
export declare const fresh: (key: string) => Participation;
/** Whether the event belongs to an interactive phase and may answer a later round of it. */
export declare const stays: (p: Participation, phase: number) => boolean;
/** The number of participations of the event if it joins a round of a phase now. */
export declare const participations: (p: Participation, phase: number) => number;
/** Whether the event may be charged to a round. */
export declare function mayJoin(p: Participation, d: Pick<Draw, 'round' | 'phase' | 'step' | 'most' | 'manifest'>): boolean;
/** Charges the event to a round. Throws where mayJoin forbids it: a second draw of a round would halve its noise. */
export declare function join(p: Participation, d: Draw): void;
/** Whether the event may be published to an attempt: never back to an older one, and under floors to one alone. */
export declare function maySend(p: Participation, a: AttemptId, floors: boolean): boolean;
/** Notes one publish that is about to be made. */
export declare function sending(p: Participation, a: AttemptId, floors: boolean): void;
/** Notes the answer to one publish. */
export declare function acked(p: Participation, a: AttemptId, ack: Ack): void;
/** Whether a publish to an attempt was acknowledged with a sequence. */
export declare const answered: (p: Participation, a: AttemptId) => boolean;
/** Settles a charged event by the Close of its round (rule 7). */
export declare function decide(p: Participation, c: Closed): void;
/** Settles a charged event that waits for no Close. */
export declare function abandon(p: Participation): void;
/** The outcome as far as it is known now. */
export declare function outcome(p: Participation): State;
