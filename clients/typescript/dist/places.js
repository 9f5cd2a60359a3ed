// Requests for places in an attempt, and their answers (stream/place.go of the Go device).
import { bigEndian, concat, equal } from './bytes.js';
/** Encodes a request: 22 bytes, whatever it is about. */
export const placeRequest = (id, users, charged) => concat(Uint8Array.of(1), id, bigEndian(users, 4), Uint8Array.of(charged ? 1 : 0));
/** Decodes the answer to a request with this id; null for anything else. */
export function parsePlace(b, id) {
    if (b.length !== 26 || b[0] !== 1 || !equal(b.slice(1, 17), id))
        return null;
    const view = new DataView(b.buffer, b.byteOffset);
    const [users, ms] = [view.getUint32(18), view.getUint32(22)];
    if (b[17] === 1 && users > 0)
        return { verdict: 'granted', users, ms };
    if (b[17] === 2 && users === 0)
        return { verdict: 'wait', ms };
    return b[17] === 3 && users === 0 ? { verdict: 'over' } : null;
}
