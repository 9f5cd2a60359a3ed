// The messages of stream/wire/panlearn.proto, field by field.
import { Message, bool, bytes, bytesList, f64, f64s, i64, message, messages, oneof, str, u32, u64, type Body } from './codec.js'

export const Kind = { stage: 1, task: 2, round: 3, open: 4, claim: 5, batch: 6, close: 7, end: 8 } as const
export type Kind = (typeof Kind)[keyof typeof Kind]

export const Suite = { none: 1, x25519: 2, mlkem768X25519: 3 } as const
export const Trust = { shuffle: 1, pan: 2, shufflePan: 3, local: 4, split: 5 } as const
export const Unit = { event: 0, user: 1 } as const
export const Statistic = { gradient: 0, moments: 1, matrix: 2 } as const
export const Continuous = { no: 0, constant: 1, decaying: 2, epochs: 3, adaptive: 4 } as const

export const Loss = new Message('Loss', {
  name: str(1), classes: u32(2), level: f64(3), width: f64(4), scoreBound: f64(5), maxCount: f64(6),
  classWeights: f64s(7), labelNoise: f64(8),
})
export const ConstraintSet = new Message('Set', { kind: str(1), radius: f64(2), min: f64(3), max: f64(4) })
export const Practical = new Message('Practical', {
  loss: message(1, Loss), features: u32(2), indicators: bytes(3), bound: f64(4), intercept: f64(5), labelLow: f64(6),
  labelHigh: f64(7), users: u64(8), clip: f64(9), unit: f64(10),
})
export const Frame = new Message('Frame', {
  center: f64s(1), scale: f64s(2), intercept: f64(3), bound: f64(4), clip: f64(5), smoothing: f64(6), whitener: f64s(7),
  labelCenter: f64(8), labelScale: f64(9), labelWeight: f64(10),
})
export const Scorecard = new Message('Scorecard', {
  norm: f64(1), low: f64(2), high: f64(3), correctness: bool(4), labelNoise: f64(5),
})
export const Descent = new Message('Descent', { stepSize: f64(1), mu: f64(2) })
export const Acceleration = new Message('Acceleration', { v: f64(1), mu: f64(2), smoothness: f64(3) })
export const Prox = new Message('Prox', { weight: f64(1), steps: u32(2), stepSize: f64(3) })
export const Mechanism = new Message('Mechanism', {
  dim: u32(1), clipNorm: f64(2), levels: u32(3), trials: u32(4), coin: u32(5), coinBits: u32(6), floorTrials: u64(7),
  maxBundle: u32(8), scores: u32(9), units: u64(10), window: u32(11), minimizer: bool(12),
})
export const Phase = new Message('Phase', {
  users: u64(1), rounds: u64(2), cohort: u64(3), minimum: u64(4), mechanism: message(5, Mechanism),
  roundsPerUser: u32(6), smoothing: f64(7), statistic: u32(8), descent: oneof(message(9, Descent)),
  acceleration: oneof(message(10, Acceleration)), again: bool(11), prox: oneof(message(12, Prox)), top: u64(13),
})
export const StartPrivacy = new Message('StartPrivacy', {
  task: str(1), epsilon: f64(2), delta: f64(3), unit: u32(4), users: u64(5),
})
export const Plan = new Message('Plan', {
  algorithm: str(1), phases: messages(2, Phase), continuous: u32(3), trust: u32(4), honestFraction: str(5),
  epsilon: f64(6), delta: f64(7), epsilonBudget: f64(8), deadlineMs: u64(9), clipNorm: f64(10), clips: bool(11),
  ridge: f64(12), set: message(13, ConstraintSet), practical: message(14, Practical),
  scorecard: message(15, Scorecard), start: f64s(16), startHash: bytes(17), retentionMs: u64(18), unit: u32(19),
  silos: u64(20), radius: f64(21), staleMs: u64(22), startPrivacy: message(23, StartPrivacy), places: bool(24),
  prio3: str(25),
})

export const Signed = new Message('Signed', { version: u32(1), kind: u32(2), body: bytes(3), key: bytes(4), signature: bytes(5) })
export const Task = new Message('Task', {
  version: u32(1), name: str(2), declaration: bytes(3), plan: message(4, Plan), learnerKey: bytes(5),
  stageKey: bytes(6), suite: u32(7), life: bytes(8), public: bytes(9), helperKey: bytes(10), issuerKey: bytes(11),
})
export const Round = new Message('Round', {
  version: u32(1), taskHash: bytes(2), round: u64(3), step: u64(4), point: f64s(5), frame: message(6, Frame),
  deadlineMs: u64(7), cohort: u64(8),
})
export const Open = new Message('Open', {
  version: u32(1), taskHash: bytes(2), round: u64(3), attempt: u64(4), manifestHash: bytes(5), suite: u32(6),
  publicKey: bytes(7), instance: bytes(8), startedUnixMs: i64(9), joinProbability: u32(10), joinDoublingMs: u32(11),
  placesMs: u32(12),
})
export const Close = new Message('Close', {
  version: u32(1), taskHash: bytes(2), round: u64(3), attempt: u64(4), manifestHash: bytes(5), batchHash: bytes(6),
  cutoff: u64(7), void: bool(8),
})
export const End = new Message('End', { version: u32(1), taskHash: bytes(2), lastRound: u64(3), reason: str(4) })
export const Report = new Message('Report', {
  version: u32(1), taskHash: bytes(2), ids: bytesList(3), encapsulated: bytes(4), ciphertext: bytes(5),
})

/** The body of each kind of signed message that a device reads. */
export const bodies = { [Kind.task]: Task, [Kind.round]: Round, [Kind.open]: Open, [Kind.close]: Close, [Kind.end]: End } as const
export type Read = keyof typeof bodies
export type BodyOf<K extends Read> = (typeof bodies)[K] extends Message<infer S> ? Body<S> : never
export type Bodied<M> = M extends Message<infer S> ? Body<S> : never
