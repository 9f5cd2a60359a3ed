#!/usr/bin/env node
// panlearn-device: takes part in a task with the events of a file, and prints what became of each.
import { createReadStream, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { Device, Refused, relay, statement, type Event, type Outcome, type Policy } from './index.js'
import { fileStore, readCharges } from './node.js'

const usage = `panlearn-device takes part in tasks over a relay, as ingest publish --relay does.

  panlearn-device run --relay URL --task NAME (--pin HASH | --trust-first-use) --events FILE --key FIELD --state DIR
  panlearn-device ledger --state DIR

run reads events as lines of JSON objects from FILE (- is standard input). FIELD names the event, or the person in a task
that protects people, for ever. It prints a line of JSON for each key when its outcome is known, and ends then; after an
interrupt it stops, and goes on where it is started again with the same --state.
ledger prints what the tasks of a state folder cost, as ingest ledger --json does.

  --policy FILE   limits in JSON: keys and meanings of the policy file of ingest publish
  --bearer FILE   the relay's token
  --quiet         says nothing on standard error

Exit code 0: all outcomes are known, or it was interrupted; 2: wrong usage; 3: policy and task do not agree; 1: anything else.
`

class Usage extends Error {}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (e) {
    throw new Usage((e as Error).message)
  }
}

function policyOf(file: string | undefined): Policy {
  if (file === undefined) return {}
  try {
    return JSON.parse(read(file)) as Policy
  } catch (e) {
    throw new Usage(`--policy ${file}: ${(e as Error).message}`)
  }
}

/** Reads events, those of one key together, in their order. */
async function events(file: string, key: string): Promise<Map<string, Event[]>> {
  if (file !== '-') read(file)
  const out = new Map<string, Event[]>()
  let number = 0
  for await (const line of createInterface({ input: file === '-' ? process.stdin : createReadStream(file) })) {
    number++
    if (line.trim() === '') continue
    let event: unknown
    try {
      event = JSON.parse(line)
    } catch {
      throw new Usage(`line ${number} of ${file} is not JSON`)
    }
    const name = typeof event === 'object' && event !== null ? (event as Event)[key] : undefined
    if ((typeof name !== 'string' && typeof name !== 'number') || name === '') throw new Usage(`line ${number} of ${file} has no ${key}`)
    const of = out.get(String(name))
    if (of === undefined) out.set(String(name), [event as Event])
    else of.push(event as Event)
  }
  return out
}

async function run(flags: Record<string, string | boolean | undefined>): Promise<void> {
  const need = (name: string): string => {
    const v = flags[name]
    if (typeof v !== 'string' || v === '') throw new Usage(`--${name}: want a value`)
    return v
  }
  const [address, task, folder] = [need('relay'), need('task'), need('state')]
  const of = await events(need('events'), need('key'))
  const stop = new AbortController()
  const bearer = flags['bearer'] === undefined ? undefined : read(String(flags['bearer'])).trim()
  const device = await Device.open({
    task, transport: relay(address, bearer === undefined ? {} : { bearer }), store: fileStore(folder, task),
    ...(flags['pin'] === undefined ? {} : { pins: { task: String(flags['pin']) } }), trustFirstUse: flags['trust-first-use'] === true,
    policy: policyOf(flags['policy'] as string | undefined), signal: stop.signal,
    log: (m) => void (flags['quiet'] === true || process.stderr.write(`${m}\n`)),
  })
  const byUser = device.agreement.declaration.privacy.unit === 'user'
  process.once('SIGINT', () => void device.close())
  process.once('SIGTERM', () => void device.close())
  await Promise.all([...of].map(async ([key, rows]) => {
    if (!byUser && rows.length > 1) throw new Usage(`key ${key} names ${rows.length} events: want one`)
    const ticket = device.submit(key, byUser ? rows : rows[0]!)
    const outcome: Outcome = await ticket.outcome
    process.stdout.write(JSON.stringify({ key, ...outcome }) + '\n')
  }))
  if (device.failed !== null) throw device.failed
  await device.close()
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      relay: { type: 'string' }, task: { type: 'string' }, pin: { type: 'string' }, 'trust-first-use': { type: 'boolean' },
      events: { type: 'string' }, key: { type: 'string' }, state: { type: 'string' }, policy: { type: 'string' },
      bearer: { type: 'string' }, quiet: { type: 'boolean' }, help: { type: 'boolean' },
    },
  })
  if (values.help) process.stdout.write(usage)
  else if (positionals.length === 1 && positionals[0] === 'run') await run(values)
  else if (positionals.length === 1 && positionals[0] === 'ledger') {
    if (values.state === undefined) throw new Usage('--state: want a folder')
    process.stdout.write(JSON.stringify(statement(readCharges(values.state), policyOf(values.policy)), null, 2) + '\n')
  } else throw new Usage('want run or ledger')
}

main().then(() => process.exit(0), (e: unknown) => {
  const isUsage = e instanceof Usage || (e as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  process.stderr.write(`panlearn-device: ${(e as Error).message}\n${isUsage ? 'panlearn-device --help says how it is used.\n' : ''}`)
  process.exit(isUsage ? 2 : e instanceof Refused ? 3 : 1)
})
