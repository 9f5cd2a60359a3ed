// What a device remembers: which task it took part in, what each event's part was, and what all tasks cost. It is written
// before it is acted on. Counts are never in it: what may be sent again is stored sealed.
import type { Bytes } from './bytes.js'
import { Refused } from './declaration.js'
import type { Pending } from './grants.js'
import type { Charge } from './ledger.js'
import type { Participation } from './participation.js'

/** What the device knows of a task beside its events. */
export interface TaskState {
  task: string // the pinned hash, in hexadecimal; empty before the first participation
  round: number // the newest that it joined; it goes behind no such round
  step: number
  manifest: string // of that round
}

/** What a device keeps of its grant: what it asked for, until it has its token. Another task of the name draws again. */
export interface Grant {
  task: string // hash, in hexadecimal
  pending?: Pending
  token?: Bytes
}

/** One change: all of it is durable, or nothing. */
export interface Change {
  task?: TaskState
  grant?: Grant
  events?: Participation[]
  charges?: Charge[]
}

/** A Store keeps the participations of one task, and the charges of all tasks of its origin. */
export interface Store {
  /** Whether the browser may delete it, and its user then takes part again, as somebody who never did. */
  readonly mayForget: boolean
  task(): Promise<TaskState>
  grant(): Promise<Grant | null>
  read(key: string): Promise<Participation | null>
  /** All events that are charged. */
  charged(): Promise<Participation[]>
  charges(): Promise<Charge[]>
  /** Makes a change durable. Rejects where another device has the store now: this one stops. */
  write(change: Change): Promise<void>
  close(): Promise<void>
}

const none: TaskState = { task: '', round: 0, step: 0, manifest: '' }

/** A store that forgets everything with the process: for tests. */
export class MemoryStore implements Store {
  readonly mayForget = true
  private state: TaskState = { ...none }
  private granted: Grant | null = null
  private readonly events = new Map<string, Participation>()
  private readonly costs = new Map<string, Charge>()

  task(): Promise<TaskState> {
    return Promise.resolve({ ...this.state })
  }

  grant(): Promise<Grant | null> {
    return Promise.resolve(structuredClone(this.granted))
  }

  read(key: string): Promise<Participation | null> {
    return Promise.resolve(structuredClone(this.events.get(key) ?? null))
  }

  charged(): Promise<Participation[]> {
    return Promise.resolve(structuredClone([...this.events.values()].filter((p) => p.state === 'charged')))
  }

  charges(): Promise<Charge[]> {
    return Promise.resolve(structuredClone([...this.costs.values()]))
  }

  write(change: Change): Promise<void> {
    if (change.task) this.state = { ...change.task }
    if (change.grant) this.granted = structuredClone(change.grant)
    for (const p of change.events ?? []) this.events.set(p.key, structuredClone(p))
    for (const c of change.charges ?? []) this.costs.set(`${c.task} ${c.user}`, structuredClone(c))
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

const database = 'panlearn' // of an origin
const tables = ['tasks', 'events', 'charges', 'holder', 'grants'] as const

/** How the store of a browser is opened. */
export interface BrowserOptions {
  /** The browser may delete it: who is forgotten takes part again, and pays again. */
  mayForget?: boolean
  /** Called where another tab or worker has the store of this task, and this one waits until that closes it or is gone. */
  waits?: () => void
  signal?: AbortSignal // ends the waiting
}

/**
 * Opens the store of a task in a browser's IndexedDB, one database for an origin. Writes are strict: they have left the
 * browser's memory before they are acted on. One tab or worker has it: another waits, and never takes it away. Each write
 * compares an instance, too, for a lock of the browser fences nothing: a device that was opened around it makes the older
 * one fail at its next write. A browser that keeps the right to delete the store is refused without mayForget, and so is a
 * frame in a page of another site, whose storage is another one.
 */
export async function indexedDB(task: string, options: BrowserOptions = {}): Promise<Store> {
  if (isFramedElsewhere()) throw new Refused('frame', 'a page of another site', 'a page of its own')
  const storage = globalThis.navigator?.storage as StorageManager | undefined
  const persists = (await storage?.persisted?.()) || (await storage?.persist?.()) || false
  if (!persists && options.mayForget !== true) {
    throw new Refused('storage', 'may be deleted by the browser', 'a persistent one, or mayForget: true: who is forgotten takes part again')
  }
  const release = await alone(`panlearn ${task}`, options)
  try {
    const store = new BrowserStore(await opened(), task, !persists, release)
    await store.hold()
    return store
  } catch (e) {
    release()
    throw e
  }
}

/** Resolves when this tab alone has a lock, with what releases it. */
async function alone(name: string, { waits, signal }: BrowserOptions): Promise<() => void> {
  const locks = globalThis.navigator?.locks as LockManager | undefined
  if (locks === undefined) return () => undefined
  const request = (options: LockOptions): Promise<(() => void) | null> =>
    new Promise((resolve, reject) => {
      const have = (lock: Lock | null): Promise<void> | undefined => {
        if (lock !== null) return new Promise((release) => resolve(release))
        resolve(null)
        return undefined
      }
      locks.request(name, options, have).catch(reject)
    })
  const free = await request({ ifAvailable: true })
  if (free !== null) return free
  waits?.()
  return (await request(signal === undefined ? {} : { signal }))!
}

function opened(): Promise<IDBDatabase> {
  return new Promise<IDBDatabase>((resolve, reject) => {
    const opening = globalThis.indexedDB.open(database, 2)
    opening.onupgradeneeded = () => tables.filter((t) => !opening.result.objectStoreNames.contains(t)).forEach((t) => opening.result.createObjectStore(t))
    opening.onsuccess = () => resolve(opening.result)
    opening.onerror = () => reject(opening.error ?? new Error('the browser opens no store'))
    opening.onblocked = () => reject(new Error('another page keeps the store from being made'))
  })
}

/**
 * Deletes what all tasks of this origin keep in this browser: participations, what is sealed and not sent, charges. It
 * takes back nothing that was sent, and who is forgotten so may take part again and pay again. A device that is open,
 * here or in another tab, is refused its next write.
 */
export async function eraseIndexedDB(): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const deleting = globalThis.indexedDB.deleteDatabase(database)
    deleting.onsuccess = () => resolve()
    deleting.onerror = () => reject(deleting.error ?? new Error('the browser does not delete the store'))
  })
}

class BrowserStore implements Store {
  private readonly holder = crypto.randomUUID()

  constructor(private readonly db: IDBDatabase, private readonly name: string, readonly mayForget: boolean,
    private readonly release: () => void) {
    db.onversionchange = () => db.close() // somebody erases it
  }

  private key(of: string): string {
    return `${this.name} ${of}`
  }

  /** Runs one strict transaction; with needs the device has to be the holder still. */
  private run<T>(mode: IDBTransactionMode, needs: boolean, use: (t: IDBTransaction) => IDBRequest<T> | undefined): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const t = this.db.transaction(tables as unknown as string[], mode, { durability: 'strict' })
      let result: IDBRequest<T> | undefined
      let lost = false
      const go = (): void => {
        result = use(t)
      }
      if (needs) {
        const holder = t.objectStore('holder').get(this.name) as IDBRequest<string>
        holder.onsuccess = () => {
          if (holder.result === this.holder) go()
          else {
            lost = true
            t.abort()
          }
        }
      } else go()
      t.oncomplete = () => resolve(result?.result)
      t.onabort = () => reject(lost ? new Error('another tab or worker has the store of this task now') : (t.error ?? new Error('aborted')))
    })
  }

  async hold(): Promise<void> {
    await this.run('readwrite', false, (t) => void t.objectStore('holder').put(this.holder, this.name) as undefined)
  }

  async task(): Promise<TaskState> {
    return (await this.run<TaskState>('readonly', false, (t) => t.objectStore('tasks').get(this.name) as IDBRequest<TaskState>)) ?? { ...none }
  }

  async grant(): Promise<Grant | null> {
    return (await this.run<Grant>('readonly', false, (t) => t.objectStore('grants').get(this.name) as IDBRequest<Grant>)) ?? null
  }

  async read(key: string): Promise<Participation | null> {
    const got = await this.run<Participation>('readonly', false,
      (t) => t.objectStore('events').get(this.key(key)) as IDBRequest<Participation>)
    return got ?? null
  }

  async charged(): Promise<Participation[]> {
    const range = IDBKeyRange.bound(this.key(''), this.key('\uffff'))
    const all = await this.run<Participation[]>('readonly', false,
      (t) => t.objectStore('events').getAll(range) as IDBRequest<Participation[]>)
    return (all ?? []).filter((p) => p.state === 'charged')
  }

  async charges(): Promise<Charge[]> {
    return (await this.run<Charge[]>('readonly', false, (t) => t.objectStore('charges').getAll() as IDBRequest<Charge[]>)) ?? []
  }

  async write(change: Change): Promise<void> {
    await this.run('readwrite', true, (t) => {
      if (change.task) t.objectStore('tasks').put(change.task, this.name)
      if (change.grant) t.objectStore('grants').put(change.grant, this.name)
      for (const p of change.events ?? []) t.objectStore('events').put(p, this.key(p.key))
      for (const c of change.charges ?? []) t.objectStore('charges').put(c, `${c.task} ${c.user}`)
      return undefined
    })
  }

  close(): Promise<void> {
    this.db.close()
    this.release()
    return Promise.resolve()
  }
}

/** Whether this page is a frame in one of another origin. */
function isFramedElsewhere(): boolean {
  const page = globalThis as { self?: unknown; top?: { location?: { origin?: string } } | null; location?: { origin: string } }
  if (page.top === undefined || page.top === null || page.top === page.self) return false // a worker, or no frame
  try {
    return page.top.location?.origin !== page.location?.origin
  } catch {
    return true
  }
}
