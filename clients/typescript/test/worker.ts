// A worker of a test: the whole device runs in it.
import { Device, indexedDB, relay, type Event } from '../src/index.js'

interface Asked {
  task: string
  relay: string
  pin: string
  key: string
  event: Event
}

const scope = globalThis as unknown as { onmessage: (m: { data: Asked }) => void; postMessage(text: string): void }

scope.onmessage = ({ data }) => {
  void (async (): Promise<string> => {
    const device = await Device.open({
      task: data.task, transport: relay(data.relay), store: await indexedDB(data.task, { mayForget: true }), pins: { task: data.pin },
    })
    const ticket = device.submit(data.key, data.event)
    await ticket.accepted
    const { state } = await device.outcome(data.key)
    await device.close()
    return state === 'charged' || state === 'counted' ? 'accepted' : state
  })().then((text) => scope.postMessage(text), (e: unknown) => scope.postMessage(String(e)))
}
