// A store in a folder, for Node. What it keeps and when is that of the store of a browser.
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { hex, unhex } from './bytes.js'
import { Refused } from './declaration.js'
import type { Charge } from './ledger.js'
import type { Participation } from './participation.js'
import type { Change, Grant, Store, TaskState } from './store.js'

const none: TaskState = { task: '', round: 0, step: 0, manifest: '' }

/** One line of the journal: a change of one task. Bytes are hexadecimal. */
interface Line extends Change {
  name: string
}

const write = (line: Line): string =>
  JSON.stringify(line, (_, v: unknown) => (v instanceof Uint8Array ? { hex: hex(v) } : v)) + '\n'
const read = (line: string): Line =>
  JSON.parse(line, (_, v: unknown) => (typeof v === 'object' && v !== null && 'hex' in v ? unhex((v as { hex: string }).hex) : v)) as Line

/**
 * Opens the store of a task in a folder, which is that of all tasks of one person or machine. A change is one line of a
 * journal, on the disk before it is acted on. The newest device that opened the folder holds it: an older one is refused
 * its next write. Do not restore it from a backup: an older copy has forgotten who took part.
 */
export function fileStore(folder: string, task: string): Store {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return new FileStore(folder, task)
}

/** Reads what the tasks of a folder cost, while devices may use it. */
export function readCharges(folder: string): Charge[] {
  const costs = new Map<string, Charge>()
  const lines = readFileSync(join(folder, 'journal'), 'utf8').split('\n')
  lines.pop()
  for (const l of lines) for (const c of read(l).charges ?? []) costs.set(`${c.task} ${c.user}`, c)
  return [...costs.values()]
}

class FileStore implements Store {
  readonly mayForget = false
  private readonly holder = randomUUID()
  private readonly states = new Map<string, TaskState>()
  private readonly grants = new Map<string, Grant>()
  private readonly events = new Map<string, Participation>()
  private readonly costs = new Map<string, Charge>()
  private readonly journal: number

  constructor(private readonly folder: string, private readonly name: string) {
    this.replace('holder', this.holder)
    const path = join(folder, 'journal')
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    const lines = text.split('\n')
    lines.pop() // empty, or a line that was not acted on, as a crash cut it
    for (const [i, l] of lines.entries()) {
      try {
        this.take(read(l))
      } catch {
        throw new Refused('store', `line ${i + 1} of ${path}`, 'a line that this device wrote')
      }
    }
    // The file is written as it is now: one line for each task, and each charge once.
    const names = new Set([...this.states.keys(), ...this.grants.keys(), ...[...this.events.keys()].map((k) => k.slice(0, k.indexOf(' ')))])
    const now = [...names].map((n) => write({
      name: n, ...(this.states.has(n) && { task: this.states.get(n)! }), ...(this.grants.has(n) && { grant: this.grants.get(n)! }),
      events: [...this.events].filter(([k]) => k.startsWith(`${n} `)).map(([, p]) => p),
    }))
    this.replace('journal', now.join('') + (this.costs.size > 0 ? write({ name, charges: [...this.costs.values()] }) : ''))
    this.journal = openSync(path, 'a', 0o600)
  }

  private replace(file: string, text: string): void {
    const path = join(this.folder, file)
    const next = openSync(`${path}.${this.holder}`, 'w', 0o600)
    writeAll(next, text)
    fsyncSync(next)
    closeSync(next)
    renameSync(`${path}.${this.holder}`, path)
    const dir = openSync(this.folder, 'r')
    fsyncSync(dir)
    closeSync(dir)
  }

  private take(l: Line): void {
    if (l.task) this.states.set(l.name, l.task)
    if (l.grant) this.grants.set(l.name, l.grant)
    for (const p of l.events ?? []) this.events.set(`${l.name} ${p.key}`, p)
    for (const c of l.charges ?? []) this.costs.set(`${c.task} ${c.user}`, c)
  }

  task(): Promise<TaskState> {
    return Promise.resolve({ ...(this.states.get(this.name) ?? none) })
  }

  grant(): Promise<Grant | null> {
    return Promise.resolve(structuredClone(this.grants.get(this.name) ?? null))
  }

  read(key: string): Promise<Participation | null> {
    return Promise.resolve(structuredClone(this.events.get(`${this.name} ${key}`) ?? null))
  }

  charged(): Promise<Participation[]> {
    const own = [...this.events].filter(([k, p]) => k.startsWith(`${this.name} `) && p.state === 'charged')
    return Promise.resolve(structuredClone(own.map(([, p]) => p)))
  }

  charges(): Promise<Charge[]> {
    return Promise.resolve(structuredClone([...this.costs.values()]))
  }

  async write(change: Change): Promise<void> {
    if (readFileSync(join(this.folder, 'holder'), 'utf8') !== this.holder) throw new Error('another process has this store now')
    const line = write({ name: this.name, ...change })
    writeAll(this.journal, line)
    fsyncSync(this.journal)
    this.take(read(line))
  }

  close(): Promise<void> {
    closeSync(this.journal)
    return Promise.resolve()
  }
}

function writeAll(file: number, text: string): void {
  for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(file, rest))
}
