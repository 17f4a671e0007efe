// Writes a new state of an authentication. If another writer was first, the change is computed again from what that
// writer stored. Nothing is decided here.
import { Fault } from '../errors.ts'
import { type Applied, applyExpiry } from './apply-message.ts'
import type { Ports } from './ports.ts'
import type { Authentication } from './record.ts'
import type { WhyIgnored } from './transition.ts'

const WRITES_MAX = 5

interface Written {
  /** The record as it is now stored. */
  record: Authentication
  /** Whether this call ended the authentication. */
  moved: boolean
  ignored?: WhyIgnored
}

/** Writes the change. Throws `Fault('contention')` if other writers were first too often in a row. */
export async function write(
  ports: Pick<Ports, 'authentications'>,
  record: Authentication,
  decide: (stored: Authentication) => Applied,
): Promise<Written> {
  let stored: Authentication | undefined = record
  for (let attempt = 0; attempt < WRITES_MAX && stored; attempt++) {
    const applied = decide(stored)
    if (applied.ignored !== undefined) return { record: stored, moved: false, ignored: applied.ignored }
    if (await ports.authentications.save(applied.record)) return { record: applied.record, moved: true }
    stored = await ports.authentications.find(record.authenticationId)
  }
  throw new Fault('contention')
}

/**
 * The authentication as of now: if its time is over, it is ended here, even if the recurring job hasn't ended it yet.
 */
export async function upToDate(
  ports: Pick<Ports, 'authentications' | 'clock'>,
  record: Authentication,
): Promise<{ record: Authentication; ended: boolean }> {
  const written = await write(ports, record, stored => applyExpiry(stored, ports.clock()))
  return { record: written.record, ended: written.moved }
}
