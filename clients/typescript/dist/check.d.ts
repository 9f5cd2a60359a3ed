import { Kind, type Bodied, type BodyOf, type Report } from './wire.js';
export declare const version = 1;
/** Checks the name of a task. */
export declare const name: (s: string) => void;
/** Throws unless a signed body is well formed by itself. */
export declare function check<K extends Kind>(kind: K, body: BodyOf<K>): void;
/** Throws unless a report is well formed. */
export declare function checkReport(m: Bodied<typeof Report>): void;
