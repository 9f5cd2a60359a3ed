// A fleet of devices in one process, for tests against a relay. It reads a file of JSON and prints a line for each outcome;
// it ends when all are known. Every device has a store of its own, so that a fleet that was killed goes on.
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Device, MemoryStore, fromIssuer, relay, type Event, type Issuer } from '../src/index.js'
import { fileStore } from '../src/node.js'

interface Fleet {
  relay: string
  task: string
  folder: string
  events: Record<string, Event | Event[]> // for each device, by its number: of a person a list
  latencyMs: number
  pin: string // hash of the task
  cuts: number // share of answers that are lost on their way
  dying?: number // share of devices whose connection dies for ever, at a moment that is drawn before
  seed?: number // of all these faults
  memory?: boolean // stores that end with the process
  issuer?: string // who gives tokens, to one of persons: device n is the person n modulo that
  persons?: number
}

const fleet = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Fleet
let seed = fleet.seed ?? 1
const lot = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647 // of faults alone
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

// Moments at which a connection dies: before it asks, with a place whose answer it never gets, charged before its report
// leaves, or before its report is acknowledged.
const moments = ['asking', 'placed', 'charged', 'published'] as const

/** fetch over a slow line, which loses some answers, or dies; it notes each report that leaves. */
const line = (folder: string | null, dies: (typeof moments)[number] | null, died: () => void, drewTwice: () => void): typeof fetch => {
  let dead = false
  const sent = new Map<string, string>() // by round and attempt
  const at = (moment: (typeof moments)[number], now: boolean): void => {
    if (dies === moment && now) dead = true
    if (!dead) return
    died()
    throw new TypeError('the line is dead')
  }
  return async (url, init) => {
    const [asks, reports] = [String(url).endsWith('/places'), String(url).endsWith('/reports')]
    at('asking', asks)
    at('charged', reports)
    if (reports) {
      const body = Buffer.from(init!.body as Uint8Array).toString('hex')
      const to = body.slice(0, 34)
      if ((sent.get(to) ?? body) !== body) drewTwice()
      sent.set(to, body)
    }
    await sleep(fleet.latencyMs / 2)
    if (reports && folder !== null) appendFileSync(join(folder, 'sent'), Buffer.from(init!.body as Uint8Array).toString('hex') + '\n')
    const answer = await fetch(url, init)
    at('placed', asks)
    at('published', reports)
    await sleep(fleet.latencyMs / 2)
    if (init?.method === 'POST' && lot() < fleet.cuts) throw new TypeError('the line was cut')
    return answer
  }
}

/** The issuer behind a login: a proxy that knows the person of a device. */
const login = (n: number): { grant: Issuer } | object => fleet.issuer === undefined ? {} : {
  grant: fromIssuer(fleet.issuer, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init?.headers, 'X-Person': `person-${n % fleet.persons!}` } }),
  }),
}

const logged = (n: number) => (m: string): void => {
  if (process.env['FLEET_LOG']) console.error(n, m)
}
await Promise.all(Object.entries(fleet.events).map(async ([of, event]) => {
  const n = Number(of)
  const folder = fleet.memory ? null : join(fleet.folder, of)
  if (folder !== null) mkdirSync(folder, { recursive: true })
  const dies = lot() < (fleet.dying ?? 0) ? moments[Math.floor(lot() * moments.length)]! : null
  let died = (): void => undefined
  let twice = false
  const end = new Promise<'died'>((resolve) => (died = () => resolve('died')))
  const device = await Device.open({
    task: fleet.task, transport: relay(fleet.relay, { fetch: line(folder, dies, () => died(), () => (twice = true)) }),
    store: folder === null ? new MemoryStore() : fileStore(folder, fleet.task), pins: { task: fleet.pin }, policy: { max_refunds: 0 }, log: logged(n),
    ...login(n),
  })
  if (fleet.memory) console.log(JSON.stringify({ device: n, ready: true }))
  const ticket = device.submit(`user-${n}`, event)
  void ticket.accepted.then(() => console.log(JSON.stringify({ device: n, accepted: true })))
  const o = await Promise.race([ticket.outcome, end])
  if (o === 'died') {
    console.log(JSON.stringify({ device: n, state: 'died', twice }))
    return // its device waits for ever
  }
  console.log(JSON.stringify({ device: n, ...o, twice, failed: device.failed?.message, stored: (await device.outcome(`user-${n}`)).state }))
  await device.close()
}))
process.exit(0)
