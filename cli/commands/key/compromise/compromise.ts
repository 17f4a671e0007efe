// `tokenmill key compromise PURPOSE`: somebody else may have a data key. Replaces it, lists what it exposed, seals or codes
// anew what can be, and says what is left to do. A run that was killed goes on when it is run again.
import { setTimeout as pause } from 'node:timers/promises'
import {
  beginCompromise,
  COMPROMISE,
  type Compromise,
  type Exposure,
  endCompromise,
  recordExposure,
} from '../../../../src/acts/key/compromise.ts'
import { ROTATE } from '../../../../src/acts/key/key-rotation.ts'
import { regrant } from '../../../../src/acts/key/regrant.ts'
import { RESEAL } from '../../../../src/acts/key/reseal.ts'
import * as dataKeys from '../../../../src/store/access/data-keys.ts'
import * as reseals from '../../../../src/store/reseal/reseals.ts'
import { sealingPurpose } from '../../../../src/store/reseal/sealed-columns.ts'
import type { Purpose } from '../../../../src/vault/key-ring.ts'
import { AFRESH_MS } from '../../../../src/vault/ring/held-keys.ts'
import { TURNING } from '../../../../src/vault/ring/turning.ts'
import type { JsonOption } from '../../../command.ts'
import { confirm } from '../../../confirm.ts'
import { EXIT, Stop } from '../../../exit.ts'
import { type OpenedVault, openVault, withSession } from '../../../open/open.ts'
import { byOf, type OperatorOptions } from '../../../open/operator.ts'
import { print, say, type Terminal } from '../../../terminal.ts'
import { regrantedText } from '../regranted.ts'
import { begin as beginReseal, follow, lineOf } from '../reseal.ts'
import { readPurpose } from '../rotate-data-key.ts'
import { turnDataKey } from '../turn-data-key.ts'
import { ADVICE } from './advice.ts'
import { listExposure } from './exposure-file.ts'

type Options = JsonOption &
  OperatorOptions & { out?: string; keyVersion?: number; valuesChange?: boolean; yes?: boolean }

export const COMPROMISE_TIMES = {
  /** A process may use the former version for so long after the next came into use, and what it writes is listed, too. */
  settleMs: AFRESH_MS + 5_000,
  lookMs: 500,
}

export function compromise(terminal: Terminal, word: string, options: Options): Promise<void> {
  const purpose = readPurpose(word)
  const turning = TURNING[purpose]
  if (!turning.turns)
    throw new Stop(`this release can't replace the key ${purpose}: ${turning.why}. ${ADVICE[purpose]}`)
  if (turning.inPhases)
    throw new Stop(
      `The key ${purpose} turns in phases: run \`tokenmill key rotate ${purpose}\`. It exposed every token that has a card. ${ADVICE[purpose]}`,
    )
  if (turning.changesValues && !options.valuesChange)
    throw new Stop(
      `A new key ${purpose} changes values that others keep, for the same card. Say that it is meant with --values-change.`,
      EXIT.usage,
    )
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const by = (action: string) => byOf({ action, subject: purpose }, options, vault.store, vault.ring)
    if (!options.yes) await confirm(terminal, `Replace the key ${purpose} because somebody else may have it?`)
    const begun = await beginCompromise(vault.store, purpose, options.keyVersion, await by(COMPROMISE))
    if ('refused' in begun) throw new Stop(refusalText(purpose, options.keyVersion, begun.refused))
    const name = `${purpose}/${begun.done.version}`
    say(terminal, begun.done.isResumed ? `${name} was marked before; going on.` : `${name} is marked as compromised.`)
    if (begun.done.isInUse) await turnDataKey(terminal, vault, purpose, await by(ROTATE))
    const exposure = await expose(terminal, vault, begun.done, { options, by })
    await makeAnew(terminal, vault, purpose, { options, by })
    await endCompromise(vault.store, begun.done, await by(COMPROMISE))
    const value = { purpose, version: begun.done.version, exposed: exposure ?? null, file: options.out ?? null }
    print(terminal, options, value, [exposureText(name, exposure, options.out), ADVICE[purpose]].join('\n'))
  })
}

interface Acting {
  options: Options
  by: (action: string) => ReturnType<typeof byOf>
}

/** Lists what the version exposed, before anything is sealed anew. Undefined: an earlier run has listed it. */
async function expose(
  terminal: Terminal,
  { store }: OpenedVault,
  compromised: Compromise,
  { options, by }: Acting,
): Promise<Exposure | undefined> {
  const { purpose, version, isListed } = compromised
  if (isListed) return undefined
  const current = await dataKeys.findActiveVersion(store, purpose)
  const isSettled = () => dataKeys.isInUseFor(store, purpose, current ?? version, COMPROMISE_TIMES.settleMs)
  if (!(await isSettled())) say(terminal, 'Waiting until no process uses the former key any more, at most 35 s ...')
  while (!(await isSettled())) await pause(COMPROMISE_TIMES.lookMs)
  const exposure = await listExposure(store, { purpose, version }, options.out)
  await recordExposure(store, { purpose, version }, exposure, await by(COMPROMISE))
  return exposure
}

/** Seals or codes anew what the key in use can, and waits until it is done. */
async function makeAnew(
  terminal: Terminal,
  { store, ring }: OpenedVault,
  purpose: Purpose,
  { options, by }: Acting,
): Promise<void> {
  if (purpose === 'grant') return say(terminal, regrantedText(await regrant(store, ring, await by(RESEAL))))
  if (!sealingPurpose(purpose)) return
  // A pass has proved already that no row is left under another version.
  const known = await reseals.find(store, purpose)
  const isProved = known?.state === 'DONE' && known.version === (await dataKeys.findActiveVersion(store, purpose))
  if (!isProved) await beginReseal(store, purpose, options, terminal)
  const ended = isProved ? known : await follow(store, purpose, terminal)
  say(terminal, lineOf(ended))
  if (ended.state !== 'DONE')
    throw new Stop('It was cancelled meanwhile, so rows are left under the compromised key; run this again.')
}

function exposureText(name: string, exposure: Exposure | undefined, out: string | undefined): string {
  if (!exposure) return `What ${name} exposed was listed by an earlier run; \`tokenmill audit list\` has the counts.`
  const counts = Object.entries(exposure).map(([column, rows]) => `${rows.toLocaleString('en')} in ${column}`)
  const listed = counts.length === 0 ? 'no row that is in the database now' : counts.join(', ')
  return `${name} exposed ${listed}${out === undefined ? '' : `; ${out} lists them`}. Backups may hold more.`
}

function refusalText(purpose: Purpose, version: number | undefined, refused: 'unknown' | 'destroyed' | 'pending') {
  const name = version === undefined ? purpose : `${purpose}/${version}`
  if (refused === 'unknown') return `There is no key ${name}; \`tokenmill key list\` lists them.`
  if (refused === 'pending')
    return `${name} is not in use yet; run \`tokenmill key rotate ${purpose}\`, then this again.`
  return `${name} was destroyed; only backups hold it and what it sealed.`
}
