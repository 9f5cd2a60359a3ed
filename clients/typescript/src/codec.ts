// The canonical encoding of wire version 1 (protobuf, stream/codec.go). Bytes that decode and are not what the encoder
// writes are refused: fields out of order, unknown ones, defaults that are written out.
import { concat, text, utf8, type Bytes } from './bytes.js'

type Wire = 0 | 1 | 2 // varint, 8 bytes, length and bytes

/** A Field is one field of a message: its number and how its value is encoded. */
export interface Field<T> {
  number: number
  wire: Wire
  empty: () => T
  isEmpty: (value: T) => boolean
  put: (value: T) => Bytes[] // payloads: several of a field that is repeated and not packed
  take: (data: Bytes | bigint, before: T) => T
  repeats?: boolean // one payload an entry
  last?: boolean // of a oneof: behind all others
}

const max64 = (1n << 64n) - 1n

function varint(n: bigint): Bytes {
  const out: number[] = []
  while (n > 0x7fn) {
    out.push(Number(n & 0x7fn) | 0x80)
    n >>= 7n
  }
  out.push(Number(n))
  return Uint8Array.from(out)
}

/** A Reader reads protobuf from its beginning; what is cut off throws. */
class Reader {
  private at = 0
  constructor(private readonly data: Bytes) {}

  get done(): boolean {
    return this.at === this.data.length
  }

  varint(): bigint {
    let out = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const b = this.bytes(1)[0]!
      out |= BigInt(b & 0x7f) << shift
      if (b < 0x80) {
        if (out > max64 || (b === 0 && shift > 0n)) break // of more than 64 bits, or longer than needed
        return out
      }
    }
    throw new Error('a number that is no canonical one')
  }

  bytes(n: number): Bytes {
    if (n > this.data.length - this.at) throw new Error('cut off')
    this.at += n
    return this.data.slice(this.at - n, this.at)
  }

  delimited(): Bytes {
    const n = this.varint()
    if (n > BigInt(this.data.length)) throw new Error('cut off')
    return this.bytes(Number(n))
  }
}

const scalar = <T>(number: number, zero: T, to: (v: T) => bigint, from: (n: bigint) => T): Field<T> => ({
  number,
  wire: 0,
  empty: () => zero,
  isEmpty: (v) => v === zero,
  put: (v) => [varint(to(v))],
  take: (n) => from(n as bigint),
})

/** A field of at most 32 bits, and an enumeration. */
export const u32 = (number: number): Field<number> =>
  scalar(number, 0, BigInt, (n) => {
    if (n >= 1n << 32n) throw new Error('a number of more than 32 bits')
    return Number(n)
  })

export const u64 = (number: number): Field<bigint> => scalar(number, 0n, (v) => v, (n) => n)

/** A signed field of 64 bits, not in zigzag. */
export const i64 = (number: number): Field<bigint> =>
  scalar(number, 0n, (v) => BigInt.asUintN(64, v), (n) => BigInt.asIntN(64, n))

export const bool = (number: number): Field<boolean> =>
  scalar(number, false, (v) => (v ? 1n : 0n), (n) => {
    if (n > 1n) throw new Error('neither true nor false')
    return n === 1n
  })

function doubleBytes(values: readonly number[]): Bytes {
  const view = new DataView(new ArrayBuffer(8 * values.length))
  values.forEach((v, i) => view.setFloat64(8 * i, v, true))
  return new Uint8Array(view.buffer)
}

function doublesOf(data: Bytes): number[] {
  if (data.length % 8 !== 0) throw new Error('cut off')
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  return Array.from({ length: data.length / 8 }, (_, i) => view.getFloat64(8 * i, true))
}

export const f64 = (number: number): Field<number> => ({
  number,
  wire: 1,
  empty: () => 0,
  isEmpty: (v) => Object.is(v, 0), // -0 is written
  put: (v) => [doubleBytes([v])],
  take: (data) => doublesOf(data as Bytes)[0]!,
})

const delimited = <T>(number: number, rest: Omit<Field<T>, 'number' | 'wire'>): Field<T> => ({ number, wire: 2, ...rest })

export const bytes = (number: number): Field<Bytes> =>
  delimited<Bytes>(number, {
    empty: () => new Uint8Array(),
    isEmpty: (v) => v.length === 0,
    put: (v) => [v],
    take: (data) => data as Bytes,
  })

export const str = (number: number): Field<string> =>
  delimited(number, { empty: () => '', isEmpty: (v) => v === '', put: (v) => [utf8(v)], take: (data) => text(data as Bytes) })

export const f64s = (number: number): Field<number[]> =>
  delimited(number, {
    empty: (): number[] => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => [doubleBytes(v)],
    take: (data) => doublesOf(data as Bytes),
  })

export const bytesList = (number: number): Field<Bytes[]> =>
  delimited(number, {
    empty: (): Bytes[] => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => v,
    take: (data, before) => [...before, data as Bytes],
    repeats: true,
  })

/** Another message, undefined where it is absent. */
export const message = <S extends Schema>(number: number, of: Message<S>): Field<Body<S> | undefined> =>
  delimited(number, {
    empty: () => undefined as Body<S> | undefined,
    isEmpty: (v) => v === undefined,
    put: (v) => [of.encode(v!)],
    take: (data) => of.read(data as Bytes),
  })

export const messages = <S extends Schema>(number: number, of: Message<S>): Field<Body<S>[]> =>
  delimited(number, {
    empty: (): Body<S>[] => [],
    isEmpty: (v) => v.length === 0,
    put: (v) => v.map((m) => of.encode(m)),
    take: (data, before) => [...before, of.read(data as Bytes)],
    repeats: true,
  })

export type Schema = Record<string, Field<any>> // fields of any type: unknown would not take them
export type Body<S extends Schema> = { [K in keyof S]: S[K] extends Field<infer T> ? T : never }

const place = (f: Field<unknown>): number => f.number + (f.last ? 2 ** 29 : 0)

/** Marks the fields of a oneof. */
export const oneof = <T>(f: Field<T>): Field<T> => ({ ...f, last: true })

/** A Message encodes and decodes one kind of message. Its fields are in ascending order of their numbers, those of a oneof last. */
export class Message<S extends Schema> {
  private readonly fields: [keyof S & string, Field<unknown>][]
  private readonly byNumber: Map<number, [keyof S & string, Field<unknown>]>

  constructor(readonly name: string, schema: S) {
    this.fields = Object.entries(schema) as [keyof S & string, Field<unknown>][]
    this.fields.sort((a, b) => place(a[1]) - place(b[1]))
    this.byNumber = new Map(this.fields.map((f) => [f[1].number, f]))
  }

  encode(value: Body<S>): Bytes {
    const parts: Bytes[] = []
    for (const [key, field] of this.fields) {
      const v = value[key] as unknown
      if (field.isEmpty(v)) continue
      for (const payload of field.put(v)) {
        parts.push(varint(BigInt(field.number * 8 + field.wire)))
        if (field.wire === 2) parts.push(varint(BigInt(payload.length)))
        parts.push(payload)
      }
    }
    return concat(...parts)
  }

  /** Decodes canonical bytes, and throws where they are not: what Message.encode would write, whatever bits a NaN has. */
  decode(data: Bytes): Body<S> {
    try {
      return this.read(data)
    } catch (e) {
      throw new Error(`${this.name}: ${(e as Error).message}`)
    }
  }

  read(data: Bytes): Body<S> {
    const out = Object.fromEntries(this.fields.map(([key, field]) => [key, field.empty()])) as Record<string, unknown>
    const r = new Reader(data)
    for (let last = 0; !r.done; ) {
      const tag = r.varint()
      const number = tag >> 3n
      const entry = this.byNumber.get(Number(number))
      if (!entry || number > 1n << 29n) throw new Error(`unknown field ${number}`)
      const [key, field] = entry
      if (Number(tag & 7n) !== field.wire) throw new Error(`${key}: another wire type`)
      if (place(field) < last || (place(field) === last && !field.repeats)) throw new Error(`${key}: twice, or out of order`)
      const payload = field.wire === 0 ? r.varint() : field.wire === 1 ? r.bytes(8) : r.delimited()
      out[key] = field.take(payload, out[key])
      if (field.isEmpty(out[key])) throw new Error(`${key}: a default`)
      last = place(field)
    }
    return out as Body<S>
  }
}
