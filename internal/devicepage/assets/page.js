// The page of a device: it says what leaves, asks, hands one entry to the device, and shows what became of it.
//
// The device decides everything that the protocol asks of one, and keeps what it has to know in IndexedDB. This script
// keeps one thing more: that somebody wants to take no part. What is entered goes from the form to the device, once.
import { Device, eraseIndexedDB, indexedDB, relay } from './device.js'

const { task, pin } = document.querySelector('main').dataset
const me = 'me' // the key of the one event of this browser in this task
const $ = (id) => document.getElementById(id)

let store, device, ticket
let settled = null // the outcome of this page's ticket
let over = false // this page asks nothing more

// That somebody wants to take no part, of all tasks of this origin.
const choices = {
  name: 'panlearn-choice',
  use(mode, f) {
    return new Promise((resolve, reject) => {
      const opening = globalThis.indexedDB.open(this.name, 1)
      opening.onupgradeneeded = () => opening.result.createObjectStore('choice')
      opening.onerror = () => reject(opening.error)
      opening.onsuccess = () => {
        const t = opening.result.transaction('choice', mode, { durability: 'strict' })
        const asked = f(t.objectStore('choice'))
        t.oncomplete = () => {
          opening.result.close()
          resolve(asked.result)
        }
        t.onabort = () => reject(t.error)
      }
    })
  },
  read() {
    return this.use('readonly', (s) => s.get('never'))
  },
  never() {
    return this.use('readwrite', (s) => s.put(Date.now(), 'never'))
  },
  erase() {
    return new Promise((resolve, reject) => {
      const deleting = globalThis.indexedDB.deleteDatabase(this.name)
      deleting.onsuccess = () => resolve()
      deleting.onerror = () => reject(deleting.error)
    })
  },
}

// What is shown.

const when = (ms) => new Date(ms).toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium' })
const upper = (x, digits = 3) => {
  const unit = 10 ** (Math.floor(Math.log10(x)) + 1 - digits)
  return Number((Math.ceil(x / unit) * unit).toPrecision(digits))
}

/** Shows where things stand. It touches the document only where that changes, as it is read aloud. */
function say(state, title, text, facts = {}) {
  const now = JSON.stringify([state, title, text, facts])
  if (say.last === now) return
  say.last = now
  $('state').dataset.state = state
  $('title').textContent = title
  $('text').textContent = text
  $('facts').replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const [row, dt, dd] = ['div', 'dt', 'dd'].map((tag) => document.createElement(tag))
    dt.textContent = name
    dd.textContent = value
    row.append(dt, dd)
    return row
  }))
  $('state').hidden = false
}

const outcomes = {
  counted: ['Your report was counted.', 'It is in the sum of its round, with those of all others. Nothing more leaves this page.'],
  uncounted: ['Your report was not counted.', 'No sum holds it, and none will. It stays paid.'],
  unknown: ['Nobody can say whether your report was counted.', 'An answer was lost, or the round was given up. It stays paid, and is not sent again.'],
}

/** What is kept of a report: when it was sent, in which round, what it cost. null: none was. */
async function kept() {
  const p = await store.read(me)
  if (p === null || p.draw === null) return null
  const charges = await store.charges()
  const own = charges.find((c) => c.task === pin)
  const facts = { Round: String(p.draw.round) }
  if (own !== undefined) {
    facts.Sent = when(own.at)
    facts.Cost = `epsilon ${upper(own.epsilon)}, delta ${own.delta}`
  }
  if (p.sealed !== null) facts.Size = `${p.sealed.length} bytes, sealed`
  if (charges.length > 1) facts['All tasks here'] = `epsilon ${upper(charges.reduce((sum, c) => sum + c.epsilon, 0))} in ${charges.length} tasks`
  if (p.state !== 'charged') facts.Outcome = p.state
  return { facts, arrived: p.sends.some((s) => s.acked > 0) }
}

/** Shows how things stand. What fails because this page ended meanwhile is no failure. */
async function show() {
  try {
    if (!over) await stand()
  } catch (e) {
    if (!over) throw e
  }
}

async function stand() {
  const outcome = settled ?? (await device.outcome(me))
  const report = await kept() // after it: what is charged is stored by then
  if (over) return
  $('offer').hidden = outcome.state !== 'fresh'
  if (device.failed !== null) {
    over = true
    say('failed', 'This tab has stopped.', `${device.failed.message}. Load the page again to go on.`, report?.facts)
  } else if (outcome.state === 'fresh') {
    $('state').hidden = true
  } else if (outcome.state === 'uncounted' && ticket !== undefined && settled === null) {
    say('again', 'A round closed without your report.', 'No sum holds it. It goes to a later round, while the cost stays within what the task promises.', report.facts)
  } else if (outcome.state === 'waiting') {
    say('waiting', 'Waiting for a place in a round.', 'Nothing of your entry has left this page. Leave it open: it is sent when a round has room for it.')
  } else if (outcome.state === 'charged') {
    const [title, text] = report.arrived
      ? ['Your report was sent.', 'Its outcome is known when its round closes. You may close this tab and come back.']
      : ['Your report is on its way.', 'The relay has not answered yet.']
    say('charged', title, navigator.onLine ? text : 'This browser is offline. It goes on when it is back.', report.facts)
  } else if (outcome.round === 0) {
    const why = outcome.state === 'refused' ? outcome.why : 'The task took nobody more, or has ended.'
    say(outcome.state, 'You took no part.', `${why} Nothing was sent, and nothing is paid.`)
  } else {
    say(outcome.state, ...outcomes[outcome.state], report.facts)
  }
}

/** Shows that this browser takes no part, and what it sent before that. */
function stopped(at, report) {
  $('offer').hidden = $('never-line').hidden = true
  $('choice').hidden = false
  say('never', 'You take no part.', `You said so on ${when(at)}. This page sends nothing from this browser. ` +
    (report === null ? 'It has sent nothing before.' : 'The report that was sent before cannot be called back, and this page does not ask any more what becomes of it.'), report?.facts)
}

// What is asked.

/** Makes a field for each that an event of the task has. */
function fields({ features, label }) {
  const make = (name, input, hint) => {
    const line = document.createElement('label')
    line.textContent = hint === undefined ? name : `${name}, ${hint}`
    input.name = name
    input.autocomplete = 'off'
    line.append(input)
    return line
  }
  const number = (name, of) => {
    const input = Object.assign(document.createElement('input'), { type: 'number', step: 'any', min: of.min ?? '', max: of.max ?? '' })
    return make(name, input, of.min === undefined ? undefined : `${of.min} to ${of.max}`)
  }
  const one = (name, words) => {
    const select = document.createElement('select')
    select.append(...['', ...words].map((w) => new Option(w, w)))
    return make(name, select)
  }
  const columns = new Map((features.columns ?? []).map((c) => [c.field ?? c.column, c]))
  const all = [...columns].map(([name, c]) => c.vocabulary !== undefined ? one(name, c.vocabulary)
    : ['numeric', 'indicator', 'bucketed', 'hats'].includes(c.kind) ? number(name, c) : make(name, document.createElement('input')))
  const words = label.classes ?? (label.positive !== undefined ? [...label.positive, ...(label.negative ?? [])] : undefined)
  all.push(words !== undefined ? one(label.column, words) : number(label.column, label))
  $('fields').replaceChildren(...all)
}

const inputs = () => [...$('fields').querySelectorAll('input, select')]

/** Fills the fields by chance. */
function example() {
  const chance = () => crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32
  for (const i of inputs()) {
    if (i.tagName === 'SELECT') i.selectedIndex = 1 + Math.floor(chance() * (i.options.length - 1))
    else if (i.type === 'number') i.value = (Number(i.min || -1) + chance() * (Number(i.max || 1) - Number(i.min || -1))).toFixed(2)
    else i.value = 'example'
  }
}

/** Reads the entry and empties the form: nothing but the device has it then. Whether it fits decides nothing here. */
function entry() {
  const event = {}
  for (const i of inputs()) {
    if (i.value !== '') event[i.name] = i.type === 'number' ? Number(i.value) : i.value
  }
  $('form').reset()
  return event
}

function take() {
  const event = entry()
  const byUser = device.agreement.declaration.privacy.unit === 'user'
  ticket = device.submit(me, byUser ? [event] : event)
  void ticket.outcome.then((o) => {
    settled = o
  })
  return show()
}

async function offer() {
  const { agreement } = device
  $('bytes').textContent = `at most ${agreement.messageBytes}`
  $('epsilon').textContent = String(upper(agreement.epsilon))
  $('delta').textContent = String(agreement.delta)
  $('factor').textContent = String(upper(Math.exp(agreement.epsilon)))
  const { trust, honest_fraction: honest } = agreement.declaration.privacy
  const noise = honest === '1' ? 'the others of your round add their noise, too' : `${honest} of the others of your round add their noise, too`
  $('rests').textContent = trust === 'local' ? 'this browser adds its noise' : `${noise}, and the stage adds up as it should`
  const others = (await store.charges()).filter((c) => c.task !== pin)
  const spent = others.reduce((sum, c) => sum + c.epsilon, 0)
  $('spent').hidden = others.length === 0
  $('spent').textContent = `From this browser somebody has taken part in ${others.length === 1 ? 'another task' : `${others.length} other tasks`} ` +
    `of this address. For one person the epsilons add up: ${upper(spent)} so far, ${upper(spent + agreement.epsilon)} with this task.`
  fields(agreement.declaration)
  $('evicts').hidden = !store.mayForget
  $('choice').hidden = false
}

// The course of things.

/** Resolves when this tab alone has the device. Another tab of this page that is open shows, and sends, until it is closed. */
function alone() {
  const keep = new Promise(() => undefined) // as long as the tab lives
  return new Promise((resolve) => {
    const have = (lock) => {
      if (lock !== null) {
        resolve()
        return keep
      }
      say('elsewhere', 'Another tab has this page open.', 'It shows how things stand. Close it to go on here: one browser takes part once.')
      void navigator.locks.request('panlearn-device', have)
      return undefined
    }
    void navigator.locks.request('panlearn-device', { ifAvailable: true }, have)
  })
}

async function start() {
  await alone()
  const never = await choices.read()
  store = await indexedDB(pin, { mayForget: true }) // one store a task: each start of the demonstration is another
  if (never !== undefined) {
    const report = await kept()
    await store.close()
    stopped(never, report)
    return
  }
  say('reading', 'Reading the task.', 'Nothing is sent.')
  device = await Device.open({
    task, store, transport: relay(location.origin), pins: { task: pin },
    log: (what) => {
      if (device === undefined) say('reading', 'Reading the task.', `Nothing is sent. What the browser says: ${what}.`)
    },
  })
  await offer()
  const again = async () => {
    await show()
    if (!over) setTimeout(() => again().catch(broken), 300)
  }
  await again()
}

function broken(e) {
  over = true
  $('offer').hidden = true
  say('failed', 'This page cannot go on.', `${e.message ?? e}. Nothing more is sent.`)
}

async function never() {
  over = true
  const at = Date.now()
  await choices.never()
  await device.close() // waits for what is on its way
  store = await indexedDB(pin, { mayForget: true })
  const report = await kept()
  await store.close()
  stopped(at, report)
}

async function erase() {
  over = true
  await device?.close()
  await eraseIndexedDB()
  await choices.erase()
  $('offer').hidden = $('choice').hidden = true
  say('erased', 'This browser keeps nothing now.', 'It does not know any more whether it took part. Load the page again to be asked as if for the first time.')
}

const guarded = (f) => () => void Promise.resolve().then(f).catch(broken)
$('example').addEventListener('click', example)
$('agree').addEventListener('change', () => {
  $('send').disabled = !$('agree').checked
})
$('form').addEventListener('submit', (e) => {
  e.preventDefault()
  if ($('agree').checked && ticket === undefined && !over) guarded(take)()
})
$('never').addEventListener('click', guarded(never))
$('erase').addEventListener('click', guarded(erase))
window.addEventListener('online', () => device && guarded(show)())
window.addEventListener('offline', () => device && guarded(show)())
start().catch(broken)
