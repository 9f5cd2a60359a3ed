// A fleet of devices in one process, for tests against a relay. It reads a file of JSON and prints a line for each outcome;
// it ends when all are known. Every device has a store of its own, so that a fleet that was killed goes on.
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Device, relay, type Event } from '../src/index.js'
import { fileStore } from '../src/node.js'

interface Fleet {
  relay: string
  task: string
  folder: string
  events: Record<string, Event | Event[]> // for each device, by its number: of a person a list
  latencyMs: number
  pin: string // hash of the task
  cuts: number // share of answers that are lost on their way
}

const fleet = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Fleet
let seed = 1
const lot = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647 // of faults alone
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** fetch over a slow line, which loses some answers; it notes each report that leaves. */
const line = (folder: string): typeof fetch => async (url, init) => {
  await sleep(fleet.latencyMs / 2)
  if (String(url).endsWith('/reports')) appendFileSync(join(folder, 'sent'), Buffer.from(init!.body as Uint8Array).toString('hex') + '\n')
  const answer = await fetch(url, init)
  await sleep(fleet.latencyMs / 2)
  if (init?.method === 'POST' && lot() < fleet.cuts) throw new TypeError('the line was cut')
  return answer
}

const logged = (n: number) => (m: string): void => {
  if (process.env['FLEET_LOG']) console.error(n, m)
}
await Promise.all(Object.entries(fleet.events).map(async ([of, event]) => {
  const n = Number(of)
  const folder = join(fleet.folder, of)
  mkdirSync(folder, { recursive: true })
  const device = await Device.open({
    task: fleet.task, transport: relay(fleet.relay, { fetch: line(folder) }), store: fileStore(folder, fleet.task),
    pins: { task: fleet.pin }, policy: { max_refunds: 0 }, log: logged(n),
  })
  const ticket = device.submit(`user-${n}`, event)
  void ticket.accepted.then(() => console.log(JSON.stringify({ device: n, accepted: true })))
  const o = await ticket.outcome
  console.log(JSON.stringify({ device: n, ...o, failed: device.failed?.message, stored: (await device.outcome(`user-${n}`)).state }))
  await device.close()
}))
process.exit(0)
