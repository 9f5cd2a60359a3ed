// The relay: records, reports and requests for places over HTTP (docs/reference/protocol.md, Over HTTP; package relayhttp
// of the Go device). No login travels with a request, and nothing but what the protocol says.
import { bigEndian, concat, equal, hex, sha256, text, type Bytes } from './bytes.js'
import type { Ack } from './participation.js'

/** A record as the broker holds it. */
export interface Stored {
  data: Bytes
  sequence: number
}

/** A mark names a record by its numbers and its hash. */
export interface Mark {
  round: bigint
  attempt: bigint
  sequence: bigint // 0: no record
  hash: Bytes
}

/** Which records are the newest, as far as the relay knows. It decides nothing: records are verified. */
export interface Latest {
  tag: string
  task: Mark
  end: Mark
  round: Mark
  open: Mark
  claim: Mark
  close: Mark
  lease: { record: Bytes; storedMs: number } // storedMs 0: not told
}

/** A Transport reaches the broker. A promise that is rejected says that nothing is known. */
export interface Transport {
  /** Reads a record by its name, such as rounds/7; null where the broker has none now, which decides nothing. */
  record(name: string): Promise<Stored | null>
  /** Reads what is newest, or waits until it is other than what was seen. */
  latest(seen: string, waitSeconds: number, signal: AbortSignal): Promise<Latest | null>
  /** Publishes one message of an attempt. It never rejects: what is no answer is unknown. */
  publish(round: bigint, attempt: bigint, id: Bytes, data: Bytes): Promise<Ack>
  /** Reads which attempts at a round are the newest, and whether it is closed. */
  attempts(round: number, signal: AbortSignal): Promise<Latest | null>
  /** Asks the stage for places; null where no answer came in time. It never rejects. */
  place(round: bigint, attempt: bigint, request: Bytes, withinMs: number): Promise<Bytes | null>
}

const version = 1
const markSize = 56
const mostAlive = 60_000 // bytes of requests that outlive their page

/** What a relay's address needs beside it. */
export interface RelayOptions {
  bearer?: string // the token of a relay that requires one: it names users of the relay, not people
  fetch?: typeof fetch
  timeoutMs?: number // of one request that does not wait; default 15,000
}

/** Reaches the tasks of a relay. */
export function relay(address: string, options: RelayOptions = {}): (task: string) => Transport {
  return (task) => new Relay(`${address.replace(/\/+$/, '')}/v1/tasks/${task}/`, options)
}

class Relay implements Transport {
  private readonly fetch: typeof fetch
  private readonly timeout: number
  private alive = 0 // bytes on their way that outlive the page

  constructor(private readonly base: string, private readonly options: RelayOptions) {
    this.fetch = options.fetch ?? globalThis.fetch.bind(globalThis)
    this.timeout = options.timeoutMs ?? 15_000
  }

  private ask(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {}
    if (this.options.bearer !== undefined) headers['Authorization'] = `Bearer ${this.options.bearer}`
    if (init.body !== undefined) headers['Content-Type'] = 'text/plain'
    return this.fetch(this.base + path, {
      ...init, headers, signal, credentials: 'omit', referrerPolicy: 'no-referrer', redirect: 'error',
    })
  }

  async record(name: string): Promise<Stored | null> {
    const answer = await this.ask(name, { cache: 'no-cache' }, AbortSignal.timeout(this.timeout))
    const data = new Uint8Array(await answer.arrayBuffer())
    if (answer.status === 404 && text(data.slice(0, 64)).startsWith('no record ')) return null
    if (answer.status !== 200) throw new Error(`the relay answers ${answer.status}`)
    const etag = (answer.headers.get('ETag') ?? '').replace(/^W\//, '').replaceAll('"', '')
    if (etag !== hex(sha256(data))) throw new Error('a record that is not what the relay says')
    return { data, sequence: Number(answer.headers.get('Panlearn-Sequence') ?? 0) }
  }

  latest(seen: string, waitSeconds: number, signal: AbortSignal): Promise<Latest | null> {
    const query = seen === '' ? '' : `?wait=${waitSeconds}&seen=${seen}`
    return this.state(`rounds/latest${query}`, AbortSignal.any([signal, AbortSignal.timeout(this.timeout + 1000 * waitSeconds)]))
  }

  attempts(round: number, signal: AbortSignal): Promise<Latest | null> {
    return this.state(`opens/${round}/latest`, AbortSignal.any([signal, AbortSignal.timeout(this.timeout)]))
  }

  private async state(path: string, limit: AbortSignal): Promise<Latest | null> {
    const answer = await this.ask(path, { cache: 'no-store' }, limit)
    const data = new Uint8Array(await answer.arrayBuffer())
    if (answer.status === 404) return null
    if (answer.status !== 200) throw new Error(`the relay answers ${answer.status}`)
    return parseLatest(data)
  }

  async publish(round: bigint, attempt: bigint, id: Bytes, data: Bytes): Promise<Ack> {
    try {
      const body = concat(Uint8Array.of(version), bigEndian(round, 8), bigEndian(attempt, 8), id, data)
      // keepalive: a page that is closed lets the report go on. Browsers take 64 KiB of it in all, and refuse what is more.
      const keepalive = this.alive + body.length < mostAlive
      if (keepalive) this.alive += body.length
      const sent = this.ask('reports', { method: 'POST', body: body as BodyInit, keepalive }, AbortSignal.timeout(this.timeout))
      const answer = await sent.finally(() => {
        if (keepalive) this.alive -= body.length
      })
      return answer.status === 200 ? parseAnswer(new Uint8Array(await answer.arrayBuffer()), id) : { status: 'unknown' }
    } catch {
      return { status: 'unknown' }
    }
  }

  async place(round: bigint, attempt: bigint, request: Bytes, withinMs: number): Promise<Bytes | null> {
    try {
      const body = concat(Uint8Array.of(version), bigEndian(round, 8), bigEndian(attempt, 8), request)
      const limit = AbortSignal.timeout(Math.min(Math.ceil(withinMs), this.timeout))
      const answer = await this.ask('places', { method: 'POST', body: body as BodyInit }, limit)
      return answer.status === 200 ? new Uint8Array(await answer.arrayBuffer()) : null
    } catch {
      return null
    }
  }
}

/** Decodes what a broker said of a report; anything else is no answer. */
export function parseAnswer(b: Bytes, id: Bytes): Ack {
  if (b.length !== 27 || b[0] !== version || !equal(b.slice(1, 17), id)) return { status: 'unknown' }
  const view = new DataView(b.buffer, b.byteOffset)
  const sequence = view.getBigUint64(18)
  const reason = b[26]!
  if (b[17] === 3 && sequence === 0n) return { status: 'refused', reason }
  if ((b[17] === 1 || b[17] === 2) && sequence > 0n && sequence < 2n ** 53n && reason === 0) {
    return { status: b[17] === 1 ? 'stored' : 'duplicate', sequence: Number(sequence) }
  }
  return { status: 'unknown' }
}

const noState = 'not the state of a task that this device reads'

/** Decodes the state of a task. */
export function parseLatest(b: Bytes): Latest {
  const marks = 1 + 6 * markSize
  if (b.length < marks + 8 || b[0] !== version) throw new Error(noState)
  const view = new DataView(b.buffer, b.byteOffset)
  const mark = (i: number): Mark => {
    const at = 1 + i * markSize
    const sequence = view.getBigUint64(at + 16)
    if (sequence === 0n && b.slice(at, at + markSize).some((x) => x !== 0)) throw new Error(noState)
    return { round: view.getBigUint64(at), attempt: view.getBigUint64(at + 8), sequence, hash: b.slice(at + 24, at + markSize) }
  }
  return {
    tag: hex(sha256(b.slice(0, marks)).slice(0, 16)), task: mark(0), end: mark(1), round: mark(2), open: mark(3),
    claim: mark(4), close: mark(5),
    lease: { record: b.slice(marks + 8), storedMs: Number(view.getBigUint64(marks) / 1_000_000n) },
  }
}

/** Asks an issuer to sign a request; null where that is not known, and the same is asked again. */
export type Issuer = (request: Bytes) => Promise<Bytes | 'refused' | null>

/**
 * Reaches the issuer of an application: this request has the person's login, and no other one of a device has. Where the
 * issuer is on another origin, credentials are to be 'include'.
 */
export function fromIssuer(address: string, options: { credentials?: RequestCredentials; fetch?: typeof fetch } = {}): Issuer {
  const ask = options.fetch ?? globalThis.fetch.bind(globalThis)
  return async (request) => {
    try {
      const answer = await ask(address, {
        method: 'POST', body: request as BodyInit, headers: { 'Content-Type': 'application/private-token-request' }, cache: 'no-store',
        credentials: options.credentials ?? 'same-origin', referrerPolicy: 'no-referrer', redirect: 'error', signal: AbortSignal.timeout(15_000),
      })
      if (answer.status === 409) return 'refused'
      return answer.status === 200 ? new Uint8Array(await answer.arrayBuffer()) : null
    } catch {
      return null
    }
  }
}
