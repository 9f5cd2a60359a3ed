const none = { task: '', round: 0, step: 0, manifest: '' };
/** A store that forgets everything with the process: for tests. */
export class MemoryStore {
    state = { ...none };
    events = new Map();
    costs = new Map();
    task() {
        return Promise.resolve({ ...this.state });
    }
    read(key) {
        return Promise.resolve(structuredClone(this.events.get(key) ?? null));
    }
    charged() {
        return Promise.resolve(structuredClone([...this.events.values()].filter((p) => p.state === 'charged')));
    }
    charges() {
        return Promise.resolve(structuredClone([...this.costs.values()]));
    }
    write(change) {
        if (change.task)
            this.state = { ...change.task };
        for (const p of change.events ?? [])
            this.events.set(p.key, structuredClone(p));
        for (const c of change.charges ?? [])
            this.costs.set(`${c.task} ${c.user}`, structuredClone(c));
        return Promise.resolve();
    }
    close() {
        return Promise.resolve();
    }
}
const tables = ['tasks', 'events', 'charges', 'holder'];
/**
 * Opens the store of a task in a browser's IndexedDB, one database for an origin. Writes are strict: they have left the
 * browser's memory before they are acted on. The newest device that opened the store holds it: an older one, as of
 * another tab, is refused its next write.
 */
export async function indexedDB(task) {
    const db = await new Promise((resolve, reject) => {
        const opening = globalThis.indexedDB.open('panlearn', 1);
        opening.onupgradeneeded = () => tables.forEach((t) => opening.result.createObjectStore(t));
        opening.onsuccess = () => resolve(opening.result);
        opening.onerror = () => reject(opening.error ?? new Error('the browser opens no store'));
        opening.onblocked = () => reject(new Error('another page keeps the store from being made'));
    });
    const store = new BrowserStore(db, task);
    await store.hold();
    return store;
}
class BrowserStore {
    db;
    name;
    holder = crypto.randomUUID();
    constructor(db, name) {
        this.db = db;
        this.name = name;
    }
    key(of) {
        return `${this.name} ${of}`;
    }
    /** Runs one strict transaction; with needs the device has to be the holder still. */
    run(mode, needs, use) {
        return new Promise((resolve, reject) => {
            const t = this.db.transaction(tables, mode, { durability: 'strict' });
            let result;
            let lost = false;
            const go = () => {
                result = use(t);
            };
            if (needs) {
                const holder = t.objectStore('holder').get(this.name);
                holder.onsuccess = () => {
                    if (holder.result === this.holder)
                        go();
                    else {
                        lost = true;
                        t.abort();
                    }
                };
            }
            else
                go();
            t.oncomplete = () => resolve(result?.result);
            t.onabort = () => reject(lost ? new Error('another tab or worker has the store of this task now') : (t.error ?? new Error('aborted')));
        });
    }
    async hold() {
        await this.run('readwrite', false, (t) => void t.objectStore('holder').put(this.holder, this.name));
    }
    async task() {
        return (await this.run('readonly', false, (t) => t.objectStore('tasks').get(this.name))) ?? { ...none };
    }
    async read(key) {
        const got = await this.run('readonly', false, (t) => t.objectStore('events').get(this.key(key)));
        return got ?? null;
    }
    async charged() {
        const range = IDBKeyRange.bound(this.key(''), this.key('\uffff'));
        const all = await this.run('readonly', false, (t) => t.objectStore('events').getAll(range));
        return (all ?? []).filter((p) => p.state === 'charged');
    }
    async charges() {
        return (await this.run('readonly', false, (t) => t.objectStore('charges').getAll())) ?? [];
    }
    async write(change) {
        await this.run('readwrite', true, (t) => {
            if (change.task)
                t.objectStore('tasks').put(change.task, this.name);
            for (const p of change.events ?? [])
                t.objectStore('events').put(p, this.key(p.key));
            for (const c of change.charges ?? [])
                t.objectStore('charges').put(c, `${c.task} ${c.user}`);
            return undefined;
        });
    }
    close() {
        this.db.close();
        return Promise.resolve();
    }
}
