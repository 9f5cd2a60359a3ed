// The records of a task under their names: S and B of docs/reference/refusals.md. What is refused here counts as not there.
import { equal, type Bytes } from './bytes.js'
import { kemOf } from './parts.js'
import { Unverified, verify, type Verified } from './signed.js'
import { Kind, Suite, type BodyOf } from './wire.js'

/** What records are verified by: a task, and its hash. */
export interface Of {
  task: BodyOf<typeof Kind.task>
  hash: Bytes
}

function want(ok: boolean, number: string): void {
  if (!ok) throw new Unverified(`not what check ${number} asks`)
}

/** Reads the Round of a number. */
export async function readRound(of: Of, record: Bytes, round: bigint): Promise<Verified<typeof Kind.round>> {
  const got = await verify(Kind.round, of.task.learnerKey, record)
  want(got.body.round === round, 'S10')
  want(equal(got.body.taskHash, of.hash), 'S11')
  return got
}

/** Reads the Open of an attempt at a Round. */
export async function readOpen(of: Of, record: Bytes, round: bigint, attempt: bigint, manifest: Bytes): Promise<Verified<typeof Kind.open>> {
  const got = await openBeside(of, record, round, attempt)
  const { suite, manifestHash, publicKey, placesMs } = got.body
  want(suite === of.task.suite, 'S12')
  want(equal(manifestHash, manifest), 'S13')
  want(suite === Suite.none ? publicKey.length === 0 : kemOf(suite)?.takes(publicKey) ?? false, 'S14')
  want(placesMs === 0 || of.task.plan!.places, 'S15')
  return got
}

/** Reads the Open that stands beside a Close: its hash alone matters. */
export async function openBeside(of: Of, record: Bytes, round: bigint, attempt: bigint): Promise<Verified<typeof Kind.open>> {
  const got = await verify(Kind.open, of.task.stageKey, record)
  want(got.body.round === round && got.body.attempt === attempt, 'S10')
  want(equal(got.body.taskHash, of.hash), 'S11')
  return got
}

/** Reads the Close of an attempt. That its manifest is that of the Round which is known is the reader's to check. */
export async function readClose(of: Of, record: Bytes, round: bigint, attempt: bigint): Promise<Verified<typeof Kind.close>> {
  const got = await verify(Kind.close, of.task.stageKey, record)
  want(got.body.round === round && got.body.attempt === attempt, 'S10')
  want(equal(got.body.taskHash, of.hash), 'S11')
  return got
}

/** Reads the End of the task, and returns its last round. */
export async function readEnd(of: Of, record: Bytes): Promise<bigint> {
  const { body } = await verify(Kind.end, of.task.learnerKey, record)
  want(equal(body.taskHash, of.hash), 'S11')
  return body.lastRound
}
