// `tokenmill key rotate fingerprint`: replaces the key by which cards are found, phase by phase, while the workers give
// the tokens their new fingerprints. If the command is killed and run again, it continues where it was.
import { setTimeout as pause } from 'node:timers/promises'
import type { By } from '../../../src/acts/act.ts'
import {
  beginBoth,
  beginNew,
  beginSingle,
  type PhaseBegun,
  type PhaseRefusal,
} from '../../../src/acts/key/card-phase.ts'
import { beginRotation, listLacking, ROTATE } from '../../../src/acts/key/key-rotation.ts'
import type { LivesKeeper } from '../../../src/acts/turn-lives.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import type { PhaseName } from '../../../src/vault/ring/card-prints.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { namesOf, refuseDropped, stopAfterRace } from './turn-data-key.ts'

const PURPOSE = 'fingerprint'
const ASK_MS = 500

export function rotateFingerprint(terminal: Terminal, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { lives, store, ring } = vault
    const by = await byOf({ action: ROTATE, subject: PURPOSE }, options, store, ring)
    const { phase } = (await lives.read()).phase
    if (phase === 'SINGLE') await begin(terminal, vault, by)
    else say(terminal, `The phase is ${phase}; going on with it.`)
    await follow(terminal, vault, by, 'SINGLE')
    const { looks } = (await lives.read()).phase
    const [version, ...former] = looks
    const left =
      former.length === 0
        ? 'No card is known under a former version.'
        : `Tokens without a number are still found under ${former.map(one => `${PURPOSE}/${one}`).join(', ')}; see \`key retire ${PURPOSE} VERSION\`.`
    print(
      terminal,
      options,
      { purpose: PURPOSE, version, looked_for: looks },
      `${PURPOSE}/${version} stands alone. ${left}`,
    )
  })
}

/** Makes the next version, waits until every process holds it, and begins to write it. */
export async function begin(terminal: Terminal, vault: LivesKeeper, by: By): Promise<void> {
  const waits = waitsOn(terminal)
  const { version, isNew } = await beginRotation(vault, PURPOSE, by).catch(stopAfterRace)
  say(terminal, `${PURPOSE}/${version} ${isNew ? 'is made' : 'was made before; going on with it'}.`)
  for (let told = ''; ; await pause(ASK_MS)) {
    await refuseDropped(vault, PURPOSE, version)
    const lacking = await listLacking(vault.store, PURPOSE, version)
    if (lacking.length === 0 && isBegun(terminal, await beginBoth(vault, version, by, waits))) return
    const line = `Waiting for processes to load it: ${namesOf(lacking)}.`
    if (lacking.length > 0 && line !== told) say(terminal, line)
    told = line
  }
}

/** Waits for the workers, and begins each next phase once they are done, until the phase is `to`. */
export async function follow(terminal: Terminal, vault: LivesKeeper, by: By, to: 'NEW' | 'SINGLE'): Promise<void> {
  const { store, lives } = vault
  const waits = waitsOn(terminal)
  for (let told = ''; ; await pause(ASK_MS)) {
    const { phase } = (await lives.read()).phase
    if (phase === 'SINGLE' || phase === to) return
    const row = await reseals.find(store, PURPOSE)
    if (row?.state === 'CANCELLED') throw new Stop(IS_EXPOSED)
    if (row?.state === 'DONE' && (await listLacking(store, PURPOSE, row.version)).length === 0)
      isBegun(terminal, await (phase === 'BOTH' ? beginNew(vault, by, waits) : beginSingle(vault, by, waits)))
    const line = row ? lineOf(phase, row) : ''
    if (line !== told) say(terminal, line)
    told = line
  }
}

/** Says that a phase has begun; false if the caller has to try again. */
function isBegun(terminal: Terminal, result: { done: PhaseBegun } | { refused: PhaseRefusal }): boolean {
  if ('done' in result) {
    say(terminal, SAYS[result.done.phase](`${PURPOSE}/${result.done.version}`))
    return true
  }
  if (result.refused === 'raced') throw new Stop('another run of this command has changed the phase; run this again.')
  return false
}

const IS_EXPOSED =
  'The former version is marked as compromised, and what it exposed is not listed yet: run `tokenmill key compromise fingerprint`, which goes on with this.'

/** Names the sessions that hold the tables which the command needs for a moment, once for each set of sessions. */
export function waitsOn(terminal: Terminal): (holders: readonly string[]) => void {
  let told = ''
  return holders => {
    const who = holders.length > 0 ? ` Now: ${holders.join(', ')}.` : ''
    const line = `Waiting for transactions that hold the tables of cards, such as pg_dump or a long report.${who}`
    if (line !== told) say(terminal, line)
    told = line
  }
}

const SAYS = {
  BOTH: (key: string) => `Cards are written under ${key}, too. Bulk workers give it to all tokens now.`,
  NEW: (key: string) => `${key} is in use. Bulk workers remove the former fingerprints now.`,
  SINGLE: (key: string) => `Every token with a number is known under ${key} alone.`,
} as const satisfies Record<PhaseName, (key: string) => string>

function lineOf(phase: PhaseName, row: reseals.Reseal): string {
  const { pass, passScanned, rowsExpected, rowsDone, rowsPerSecond, isHeld, failedRow } = row
  const of = rowsExpected === null ? '' : ` of about ${count(rowsExpected)}`
  const rate = rowsPerSecond === null ? '' : `, ${count(rowsPerSecond)}/s`
  const waits = isHeld || row.state === 'DONE' ? '' : '; waits for a bulk worker'
  const failed = failedRow ? `; could not be changed: ${failedRow}; the log of the workers has all of them` : ''
  return `${phase}, pass ${pass}: looked at ${count(passScanned)}${of} tokens, changed ${count(rowsDone)}${rate}${waits}${failed}`
}

const count = (rows: number) => rows.toLocaleString('en')
