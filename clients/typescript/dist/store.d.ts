import type { Participation } from './participation.js';
/** What one task cost whom: entries of the ledger of one origin. */
export interface Charge {
    task: string;
    name: string;
    user: string;
    epsilon: number;
    delta: number;
    at: number;
}
/** What the device knows of a task beside its events. */
export interface TaskState {
    task: string;
    round: number;
    step: number;
    manifest: string;
}
/** One change: all of it is durable, or nothing. */
export interface Change {
    task?: TaskState;
    events?: Participation[];
    charges?: Charge[];
}
/** A Store keeps the participations of one task, and the charges of all tasks of its origin. */
export interface Store {
    task(): Promise<TaskState>;
    read(key: string): Promise<Participation | null>;
    /** All events that are charged. */
    charged(): Promise<Participation[]>;
    charges(): Promise<Charge[]>;
    /** Makes a change durable. Rejects where another device has the store now: this one stops. */
    write(change: Change): Promise<void>;
    close(): Promise<void>;
}
/** A store that forgets everything with the process: for tests. */
export declare class MemoryStore implements Store {
    private state;
    private readonly events;
    private readonly costs;
    task(): Promise<TaskState>;
    read(key: string): Promise<Participation | null>;
    charged(): Promise<Participation[]>;
    charges(): Promise<Charge[]>;
    write(change: Change): Promise<void>;
    close(): Promise<void>;
}
/**
 * Opens the store of a task in a browser's IndexedDB, one database for an origin. Writes are strict: they have left the
 * browser's memory before they are acted on. The newest device that opened the store holds it: an older one, as of
 * another tab, is refused its next write.
 */
export declare function indexedDB(task: string): Promise<Store>;
