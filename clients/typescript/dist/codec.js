// The canonical encoding of wire version 1 (protobuf, stream/codec.go). Bytes that decode and are not what the encoder
// writes are refused: fields out of order, unknown ones, defaults that are written out.
import { concat, equal, text, utf8 } from './bytes.js';
const max64 = (1n << 64n) - 1n;
function varint(n) {
    const out = [];
    while (n > 0x7fn) {
        out.push(Number(n & 0x7fn) | 0x80);
        n >>= 7n;
    }
    out.push(Number(n));
    return Uint8Array.from(out);
}
/** A Reader reads protobuf from its beginning; what is cut off throws. */
class Reader {
    data;
    at = 0;
    constructor(data) {
        this.data = data;
    }
    get done() {
        return this.at === this.data.length;
    }
    varint() {
        let out = 0n;
        for (let shift = 0n; shift < 70n; shift += 7n) {
            const b = this.bytes(1)[0];
            out |= BigInt(b & 0x7f) << shift;
            if (b < 0x80) {
                if (out > max64)
                    break;
                return out;
            }
        }
        throw new Error('a number of more than 64 bits');
    }
    bytes(n) {
        if (n > this.data.length - this.at)
            throw new Error('cut off');
        this.at += n;
        return this.data.slice(this.at - n, this.at);
    }
    delimited() {
        const n = this.varint();
        if (n > BigInt(this.data.length))
            throw new Error('cut off');
        return this.bytes(Number(n));
    }
}
const scalar = (number, zero, to, from) => ({
    number,
    wire: 0,
    empty: () => zero,
    isEmpty: (v) => v === zero,
    put: (v) => [varint(to(v))],
    take: (n) => from(n),
});
/** A field of at most 32 bits, and an enumeration. */
export const u32 = (number) => scalar(number, 0, BigInt, (n) => {
    if (n >= 1n << 32n)
        throw new Error('a number of more than 32 bits');
    return Number(n);
});
export const u64 = (number) => scalar(number, 0n, (v) => v, (n) => n);
/** A signed field of 64 bits, not in zigzag. */
export const i64 = (number) => scalar(number, 0n, (v) => BigInt.asUintN(64, v), (n) => BigInt.asIntN(64, n));
export const bool = (number) => scalar(number, false, (v) => (v ? 1n : 0n), (n) => n !== 0n);
function doubleBytes(values) {
    const view = new DataView(new ArrayBuffer(8 * values.length));
    values.forEach((v, i) => view.setFloat64(8 * i, v, true));
    return new Uint8Array(view.buffer);
}
function doublesOf(data) {
    if (data.length % 8 !== 0)
        throw new Error('cut off');
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    return Array.from({ length: data.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}
export const f64 = (number) => ({
    number,
    wire: 1,
    empty: () => 0,
    isEmpty: (v) => Object.is(v, 0), // -0 is written
    put: (v) => [doubleBytes([v])],
    take: (data) => doublesOf(data)[0],
});
const delimited = (number, rest) => ({ number, wire: 2, ...rest });
export const bytes = (number) => delimited(number, {
    empty: () => new Uint8Array(),
    isEmpty: (v) => v.length === 0,
    put: (v) => [v],
    take: (data) => data,
});
export const str = (number) => delimited(number, { empty: () => '', isEmpty: (v) => v === '', put: (v) => [utf8(v)], take: (data) => text(data) });
export const f64s = (number) => delimited(number, {
    empty: () => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => [doubleBytes(v)],
    take: (data, before) => before.concat(doublesOf(data)),
});
export const u64s = (number) => delimited(number, {
    empty: () => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => [concat(...v.map(varint))],
    take: (data, before) => {
        const r = new Reader(data);
        const out = [...before];
        while (!r.done)
            out.push(r.varint());
        return out;
    },
});
export const bytesList = (number) => delimited(number, {
    empty: () => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => v,
    take: (data, before) => [...before, data],
});
/** Another message, undefined where it is absent. */
export const message = (number, of) => delimited(number, {
    empty: () => undefined,
    isEmpty: (v) => v === undefined,
    put: (v) => [of.encode(v)],
    take: (data, before) => {
        if (before !== undefined)
            throw new Error('twice');
        return of.read(data);
    },
});
export const messages = (number, of) => delimited(number, {
    empty: () => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => v.map((m) => of.encode(m)),
    take: (data, before) => [...before, of.read(data)],
});
/** A Message encodes and decodes one kind of message. Its fields are in ascending order of their numbers. */
export class Message {
    name;
    fields;
    byNumber;
    constructor(name, schema) {
        this.name = name;
        this.fields = Object.entries(schema);
        this.fields.sort((a, b) => a[1].number - b[1].number);
        this.byNumber = new Map(this.fields.map((f) => [f[1].number, f]));
    }
    encode(value) {
        const parts = [];
        for (const [key, field] of this.fields) {
            const v = value[key];
            if (field.isEmpty(v))
                continue;
            for (const payload of field.put(v)) {
                parts.push(varint(BigInt(field.number * 8 + field.wire)));
                if (field.wire === 2)
                    parts.push(varint(BigInt(payload.length)));
                parts.push(payload);
            }
        }
        return concat(...parts);
    }
    /** Decodes canonical bytes, and throws where they are not. */
    decode(data) {
        let out;
        try {
            out = this.read(data);
        }
        catch (e) {
            throw new Error(`${this.name}: ${e.message}`);
        }
        if (!equal(this.encode(out), data))
            throw new Error(`${this.name}: not the canonical encoding`);
        return out;
    }
    /** Decodes what may not be canonical: decode compares the whole. */
    read(data) {
        const out = Object.fromEntries(this.fields.map(([key, field]) => [key, field.empty()]));
        const r = new Reader(data);
        while (!r.done) {
            const tag = r.varint();
            const entry = this.byNumber.get(Number(tag >> 3n));
            if (!entry || tag >> 3n > 1n << 29n)
                throw new Error(`unknown field ${tag >> 3n}`);
            const [key, field] = entry;
            if (Number(tag & 7n) !== field.wire)
                throw new Error(`${key}: another wire type`);
            const payload = field.wire === 0 ? r.varint() : field.wire === 1 ? r.bytes(8) : r.delimited();
            out[key] = field.take(payload, out[key]);
        }
        return out;
    }
}
