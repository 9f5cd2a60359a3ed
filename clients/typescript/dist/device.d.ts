import { Agreement, type Policy } from './consent.js';
import { type Event } from './features.js';
import { type State } from './participation.js';
import type { Transport } from './relay.js';
import { type Kem } from './seal.js';
import type { Store } from './store.js';
/** How a device is opened. */
export interface Options {
    task: string;
    transport: (task: string) => Transport;
    store: Store;
    /** Which task this is: its hash, or the keys of learner and stage. Else trustFirstUse has to be said. */
    pins?: {
        task?: string;
        learner?: string;
        stage?: string;
    };
    trustFirstUse?: boolean;
    policy?: Policy;
    /** The key encapsulation of suite 3: await import('@panlearn/device/hybrid'). */
    hybrid?: Kem;
    /** Names the person of all events, where the ledger is of several. */
    user?: string;
    /** Where the device says what it does; never anything of an event. */
    log?: (message: string) => void;
    signal?: AbortSignal;
}
/** What became of an event. open: the round was not closed when this was said. */
export interface Outcome {
    state: State | 'waiting' | 'refused';
    round: number;
    open: boolean;
    why?: string;
}
/** A Ticket is one event on its way. */
export interface Ticket {
    readonly key: string;
    /** Whether the event fits the task; one that does not is sent as the zero vector. Known when it is accepted. */
    readonly fits: boolean | undefined;
    /** Resolves when the event is charged, durably, or settled without that. */
    readonly accepted: Promise<void>;
    /** Resolves when its outcome is known: its round has closed, or the task has ended. */
    readonly outcome: Promise<Outcome>;
}
/** Takes part in one task. */
export declare class Device {
    private readonly options;
    readonly agreement: Agreement;
    private readonly log;
    private readonly going;
    private readonly stop;
    private readonly transport;
    private state;
    private readAt;
    private round;
    private endedAt;
    private ended;
    private tick;
    private readonly running;
    private kick;
    /** Why the device stopped by itself; null while it runs. */
    failed: Error | null;
    private constructor();
    /** Waits until the task is announced, and opens a device for it. Throws Refused where the policy does not agree. */
    static open(options: Options): Promise<Device>;
    /**
     * Takes an event, at once. key names it for ever: a key that took part is answered and not sent again. In a task that
     * protects people events are all that this person ever contributes. Nothing here looks into an event: one that does not
     * fit takes part as the zero vector.
     */
    submit(key: string, event: Event | Event[]): Ticket;
    /** Returns what is known of an event. */
    outcome(key: string): Promise<Outcome>;
    /** Stops. What is charged stays so: a later device with the same store learns what became of it. */
    close(): Promise<void>;
    private outcomeOf;
    private finish;
    private run;
    /** Waits for a time, or until there is something to do. */
    private kicked;
    /** Reads what is newest: at once where something waits for a time, else when the relay says that it changed. */
    private look;
    private takeRound;
    private takeOpen;
    private takeEnd;
    /** Chooses the tick: the larger of 100 ms and eight times what a decoy takes. */
    private measure;
    /** The rows of a person that enter a report; 1 of an event. */
    private get items();
    private mapped;
    /** The packed counts of a report about some rows; null rows are the zero vector. */
    private report;
    /** Takes the events of this tick one step further: one joins, and what is charged is sent. */
    private advance;
    private isSettled;
    private drawOf;
    /** Whether the event may join now: its lot has come and, where the stage gives places, it has one. */
    private mayEnter;
    /** Charges the event to the round, durably, and sends it on the next tick. */
    private joins;
    /** Seals for the newest attempt and stores that before the first publish. */
    private store;
    /** Publishes a charged event to the newest attempt, where that has no answer yet. */
    private send;
    /** Decides the charged events of rounds that are closed. */
    private settle;
    private conclude;
    private giveUp;
    /** Reads the Close of a round and the Open that stands beside it: the relay by name, never a cache. */
    private closeOf;
    /** Returns why the policy's totals do not allow a charge beside those of other tasks; null where they do. */
    private totals;
}
/** The time after Open at which a device may join with its draw of 32 bits (rule 11). */
export declare function rampAfter(drawn: number, open: {
    joinProbability: number;
    joinDoublingMs: number;
}): number;
