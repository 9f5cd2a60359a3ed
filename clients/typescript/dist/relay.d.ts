import { type Bytes } from './bytes.js';
import type { Ack } from './participation.js';
/** A record as the broker holds it. */
export interface Stored {
    data: Bytes;
    sequence: number;
}
/** A mark names a record by its numbers and its hash. */
export interface Mark {
    round: bigint;
    attempt: bigint;
    sequence: bigint;
    hash: Bytes;
}
/** Which records are the newest, as far as the relay knows. It decides nothing: records are verified. */
export interface Latest {
    tag: string;
    task: Mark;
    end: Mark;
    round: Mark;
    open: Mark;
    claim: Mark;
    close: Mark;
    lease: {
        record: Bytes;
        storedMs: number;
    };
}
/** A Transport reaches the broker. A promise that is rejected says that nothing is known. */
export interface Transport {
    /** Reads a record by its name, such as rounds/7; null where the broker has none now, which decides nothing. */
    record(name: string): Promise<Stored | null>;
    /** Reads what is newest, or waits until it is other than what was seen. */
    latest(seen: string, waitSeconds: number, signal: AbortSignal): Promise<Latest | null>;
    /** Publishes one message of an attempt. It never rejects: what is no answer is unknown. */
    publish(round: bigint, attempt: bigint, id: Bytes, data: Bytes): Promise<Ack>;
    /** Asks the stage for places; null where no answer came. */
    place(round: bigint, attempt: bigint, request: Bytes): Promise<Bytes | null>;
}
/** What a relay's address needs beside it. */
export interface RelayOptions {
    bearer?: string;
    fetch?: typeof fetch;
    timeoutMs?: number;
}
/** Reaches the tasks of a relay. */
export declare function relay(address: string, options?: RelayOptions): (task: string) => Transport;
/** Decodes what a broker said of a report; anything else is no answer. */
export declare function parseAnswer(b: Bytes, id: Bytes): Ack;
/** Decodes the state of a task. */
export declare function parseLatest(b: Bytes): Latest;
