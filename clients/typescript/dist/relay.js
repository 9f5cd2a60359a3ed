// The relay: records, reports and requests for places over HTTP (docs/reference/protocol.md, Over HTTP; package relayhttp
// of the Go device). No login travels with a request, and nothing but what the protocol says.
import { bigEndian, concat, equal, hex, sha256, text } from './bytes.js';
const version = 1;
const markSize = 56;
/** Reaches the tasks of a relay. */
export function relay(address, options = {}) {
    return (task) => new Relay(`${address.replace(/\/+$/, '')}/v1/tasks/${task}/`, options);
}
class Relay {
    base;
    options;
    fetch;
    timeout;
    constructor(base, options) {
        this.base = base;
        this.options = options;
        this.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
        this.timeout = options.timeoutMs ?? 15_000;
    }
    ask(path, init, signal) {
        const headers = {};
        if (this.options.bearer !== undefined)
            headers['Authorization'] = `Bearer ${this.options.bearer}`;
        if (init.body !== undefined)
            headers['Content-Type'] = 'text/plain';
        return this.fetch(this.base + path, {
            ...init, headers, signal, credentials: 'omit', referrerPolicy: 'no-referrer', redirect: 'error',
        });
    }
    async record(name) {
        const answer = await this.ask(name, { cache: 'no-cache' }, AbortSignal.timeout(this.timeout));
        const data = new Uint8Array(await answer.arrayBuffer());
        if (answer.status === 404 && text(data.slice(0, 64)).startsWith('no record '))
            return null;
        if (answer.status !== 200)
            throw new Error(`the relay answers ${answer.status}`);
        const etag = (answer.headers.get('ETag') ?? '').replace(/^W\//, '').replaceAll('"', '');
        if (etag !== hex(sha256(data)))
            throw new Error('a record that is not what the relay says');
        return { data, sequence: Number(answer.headers.get('Panlearn-Sequence') ?? 0) };
    }
    async latest(seen, waitSeconds, signal) {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(this.timeout + 1000 * waitSeconds)]);
        const query = seen === '' ? '' : `?wait=${waitSeconds}&seen=${seen}`;
        const answer = await this.ask(`rounds/latest${query}`, { cache: 'no-store' }, limit);
        const data = new Uint8Array(await answer.arrayBuffer());
        if (answer.status === 404)
            return null;
        if (answer.status !== 200)
            throw new Error(`the relay answers ${answer.status}`);
        return parseLatest(data);
    }
    async publish(round, attempt, id, data) {
        try {
            const body = concat(Uint8Array.of(version), bigEndian(round, 8), bigEndian(attempt, 8), id, data);
            // keepalive: a page that is closed lets the report go on. Browsers take 64 KiB of it in all.
            const answer = await this.ask('reports', { method: 'POST', body: body, keepalive: body.length < 60_000 }, AbortSignal.timeout(this.timeout));
            return answer.status === 200 ? parseAnswer(new Uint8Array(await answer.arrayBuffer()), id) : { status: 'unknown' };
        }
        catch {
            return { status: 'unknown' };
        }
    }
    async place(round, attempt, request) {
        try {
            const body = concat(Uint8Array.of(version), bigEndian(round, 8), bigEndian(attempt, 8), request);
            const answer = await this.ask('places', { method: 'POST', body: body }, AbortSignal.timeout(this.timeout));
            return answer.status === 200 ? new Uint8Array(await answer.arrayBuffer()) : null;
        }
        catch {
            return null;
        }
    }
}
/** Decodes what a broker said of a report; anything else is no answer. */
export function parseAnswer(b, id) {
    if (b.length !== 27 || b[0] !== version || !equal(b.slice(1, 17), id))
        return { status: 'unknown' };
    const view = new DataView(b.buffer, b.byteOffset);
    const sequence = view.getBigUint64(18);
    const reason = b[26];
    if (b[17] === 3 && sequence === 0n)
        return { status: 'refused', reason };
    if ((b[17] === 1 || b[17] === 2) && sequence > 0n && sequence < 2n ** 53n && reason === 0) {
        return { status: b[17] === 1 ? 'stored' : 'duplicate', sequence: Number(sequence) };
    }
    return { status: 'unknown' };
}
/** Decodes the state of a task. */
export function parseLatest(b) {
    const marks = 1 + 6 * markSize;
    if (b.length < marks + 8 || b[0] !== version)
        throw new Error('not the state of a task that this device reads');
    const view = new DataView(b.buffer, b.byteOffset);
    const mark = (i) => {
        const at = 1 + i * markSize;
        return {
            round: view.getBigUint64(at), attempt: view.getBigUint64(at + 8), sequence: view.getBigUint64(at + 16),
            hash: b.slice(at + 24, at + markSize),
        };
    };
    return {
        tag: hex(sha256(b.slice(0, marks)).slice(0, 16)), task: mark(0), end: mark(1), round: mark(2), open: mark(3),
        claim: mark(4), close: mark(5),
        lease: { record: b.slice(marks + 8), storedMs: Number(view.getBigUint64(marks) / 1000000n) },
    };
}
