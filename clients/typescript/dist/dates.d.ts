import type { Part } from './declaration.js';
/** Returns a part of a date, null for an hour where there is no time. Throws for what is no date. */
export declare function datePart(text: string, part: Part): number | null;
