// `tokenmill key reseal PURPOSE`: has the workers seal everything anew under the key in use, shows how far they are, and
// cancels it.
import { setTimeout as pause } from 'node:timers/promises'
import { listLacking } from '../../../src/acts/key/key-rotation.ts'
import { regrant } from '../../../src/acts/key/regrant.ts'
import {
  beginReseal,
  cancelReseal,
  RESEAL,
  RESEAL_CANCEL,
  type ResealBegun,
  type ResealRefusal,
} from '../../../src/acts/key/reseal.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import { SEALING_PURPOSES, sealingPurpose } from '../../../src/store/reseal/sealed-columns.ts'
import { duration } from '../../../src/units.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { GRANT_LISTS } from '../../open/grant-lists.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal } from '../../terminal.ts'
import { regrantedText } from './regranted.ts'

type ResealOptions = JsonOption & OperatorOptions & { follow?: boolean; cancel?: boolean }

const ASK_MS = 1_000

export function reseal(terminal: Terminal, purpose: string, options: ResealOptions): Promise<void> {
  if (purpose === 'grant') return codeAnew(terminal, options)
  if (!sealingPurpose(purpose))
    throw new Stop(
      `Nothing that lasts is sealed under the key ${purpose}; the purposes are ${SEALING_PURPOSES.join(', ')}, grant.`,
      EXIT.usage,
    )
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    if (options.cancel) await cancel(store, purpose, options)
    else await begin(store, purpose, options, terminal)
    const row = options.follow && !options.cancel ? await follow(store, purpose, terminal) : await find(store, purpose)
    print(terminal, options, shown(row), lineOf(row))
  })
}

/** Codes the rows that grant rights anew: they are few, so no worker is needed. */
function codeAnew(terminal: Terminal, options: ResealOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const by = await byOf({ action: RESEAL, subject: 'grant' }, options, store, ring)
    const regranted = await regrant(store, ring, by, GRANT_LISTS)
    print(terminal, options, { purpose: 'grant', rows_done: regranted.done }, regrantedText(regranted))
  })
}

export async function begin(store: Store, purpose: string, options: ResealOptions, terminal: Terminal): Promise<void> {
  const by = await byOf({ action: RESEAL, subject: purpose }, options, store)
  const verdict = await beginReseal(store, purpose, by)
  if ('done' in verdict) return say(terminal, begunText(purpose, verdict.done))
  if (verdict.refused !== 'running') throw new Stop(await refusalText(store, purpose, verdict.refused))
}

function begunText(purpose: string, { version, isResumed }: ResealBegun): string {
  return isResumed
    ? `It goes on where it was cancelled; bulk workers seal everything anew under ${purpose}/${version}.`
    : `Bulk workers seal everything anew under ${purpose}/${version}.`
}

async function refusalText(store: Store, purpose: string, refused: Exclude<ResealRefusal, 'running'>): Promise<string> {
  if (refused === 'no_key') return `There is no key ${purpose} in use; run \`tokenmill schema upgrade\`.`
  const version = await dataKeys.findActiveVersion(store, purpose)
  const lacking = version === undefined ? [] : await listLacking(store, purpose, version)
  const hosts = [...new Set(lacking.map(({ host, role }) => `${host} (${role})`))].join(', ')
  return `These processes don't hold ${purpose}/${version}: ${hosts}. Restart them with this release, or wait until they do.`
}

async function cancel(store: Store, purpose: string, options: ResealOptions): Promise<void> {
  const by = await byOf({ action: RESEAL_CANCEL, subject: purpose }, options, store)
  const verdict = await cancelReseal(store, purpose, by)
  if ('refused' in verdict) throw new Stop(`Nothing is being sealed anew under the key ${purpose}.`)
}

export async function follow(store: Store, purpose: string, terminal: Terminal): Promise<reseals.Reseal> {
  for (let told = ''; ; await pause(ASK_MS)) {
    const row = await find(store, purpose)
    if (row.state !== 'RUNNING') return row
    const line = lineOf(row)
    if (line !== told) say(terminal, line)
    told = line
  }
}

async function find(store: Store, purpose: string): Promise<reseals.Reseal> {
  const row = await reseals.find(store, purpose)
  if (!row) throw new Stop(`Nothing was ever sealed anew under the key ${purpose}.`)
  return row
}

/** One line: how far it is. */
export function lineOf(row: reseals.Reseal): string {
  const { purpose, version, state, pass, rowsDone, endedAt, failedRow } = row
  const done = `${count(rowsDone)} rows sealed anew`
  const failed = failedRow ? `; a row can't be opened: ${failedRow}; the log of the workers has all of them` : ''
  if (state === 'DONE')
    return `${purpose}: done under ${purpose}/${version} at ${moment(endedAt)}, ${done}; pass ${pass} found none left`
  if (state === 'CANCELLED') return `${purpose}: cancelled at ${moment(endedAt)}, ${done}${failed}`
  return `${purpose}: pass ${pass}, ${done}, ${progressOf(row)}${failed}`
}

function progressOf({ isHeld, passScanned, rowsExpected, rowsPerSecond }: reseals.Reseal): string {
  if (!isHeld) return passScanned === 0 ? 'waits for a bulk worker' : 'waits for the next pass, or for a bulk worker'
  const looked = `looked at ${count(passScanned)}${rowsExpected === null ? '' : ` of about ${count(rowsExpected)}`}`
  if (rowsPerSecond === null) return looked
  const left = leftMs({ passScanned, rowsExpected, rowsPerSecond })
  return `${looked}, ${count(rowsPerSecond)}/s${left === undefined ? '' : `, about ${duration(left)} left of this pass`}`
}

function leftMs({
  passScanned,
  rowsExpected,
  rowsPerSecond,
}: Pick<reseals.Reseal, 'passScanned' | 'rowsExpected' | 'rowsPerSecond'>): number | undefined {
  if (rowsExpected === null || !rowsPerSecond) return undefined
  return (Math.max(0, rowsExpected - passScanned) * 1000) / rowsPerSecond
}

const count = (rows: number) => rows.toLocaleString('en')

function shown(row: reseals.Reseal): unknown {
  const left = leftMs(row)
  return {
    purpose: row.purpose,
    version: row.version,
    state: row.state,
    pass: row.pass,
    rows_done: row.rowsDone,
    pass_scanned: row.passScanned,
    pass_found: row.passFound,
    pass_failed: row.passFailed,
    failed_row: row.failedRow,
    rows_expected: row.rowsExpected,
    rows_per_second: row.rowsPerSecond,
    seconds_left: left === undefined ? null : Math.round(left / 1000),
    is_held: row.isHeld,
    started_at: moment(row.startedAt),
    ended_at: row.endedAt === null ? null : moment(row.endedAt),
    proved_at: row.cleanAt === null ? null : moment(row.cleanAt),
  }
}
