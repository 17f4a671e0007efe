// `tokenmill key compromise PURPOSE`, if somebody else may have a data key: replaces the key, lists the rows that it
// exposed, seals or codes them anew if the purpose has that, and says what is left to do. If the command is killed and
// run again, it continues where it was.
import { setTimeout as pause } from 'node:timers/promises'
import {
  beginCompromise,
  COMPROMISE,
  type Compromise,
  type Exposure,
  endCompromise,
  isSuspect,
  recordExposure,
} from '../../../../src/acts/key/compromise.ts'
import { ROTATE } from '../../../../src/acts/key/key-rotation.ts'
import { regrant } from '../../../../src/acts/key/regrant.ts'
import { RESEAL } from '../../../../src/acts/key/reseal.ts'
import * as dataKeys from '../../../../src/store/access/data-keys.ts'
import * as reseals from '../../../../src/store/reseal/reseals.ts'
import { sealingPurpose } from '../../../../src/store/reseal/sealed-columns.ts'
import { AFRESH_MS } from '../../../../src/vault/ring/held-keys.ts'
import type { Purpose } from '../../../../src/vault/ring/key-ring.ts'
import { TURNING } from '../../../../src/vault/ring/turning.ts'
import type { JsonOption } from '../../../command.ts'
import { confirm } from '../../../confirm.ts'
import { EXIT, Stop } from '../../../exit.ts'
import { GRANT_LISTS } from '../../../open/grant-lists.ts'
import { type OpenedVault, openVault, withSession } from '../../../open/open.ts'
import { byOf, type OperatorOptions } from '../../../open/operator.ts'
import { print, say, type Terminal } from '../../../terminal.ts'
import { regrantedText } from '../regranted.ts'
import { begin as beginReseal, follow, lineOf } from '../reseal.ts'
import { readPurpose } from '../rotate-data-key.ts'
import { turnDataKey } from '../turn-data-key.ts'
import { ADVICE } from './advice.ts'
import { listExposure } from './exposure-file.ts'
import { replaceInPhases } from './fingerprint.ts'

type Options = JsonOption &
  OperatorOptions & {
    out?: string
    keyVersion?: number
    valuesChange?: boolean
    yes?: boolean
  }

export const COMPROMISE_TIMES = {
  /**
   * How long a process may use the former version after the next one came into use. What it writes in that time is
   * listed, too.
   */
  settleMs: AFRESH_MS + 5_000,
  lookMs: 500,
}

export function compromise(terminal: Terminal, word: string, options: Options): Promise<void> {
  const purpose = readPurpose(word)
  const turning = TURNING[purpose]
  if (turning.changesValues && !options.valuesChange)
    throw new Stop(
      `A new key ${purpose} changes values that others keep, for the same card. Say that it is meant with --values-change.`,
      EXIT.usage,
    )
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const by = (action: string) => byOf({ action, subject: purpose }, options, vault.store, vault.ring)
    if (!options.yes) await confirm(terminal, `Replace the key ${purpose} because somebody else may have it?`)
    const answered = await answer(terminal, vault, purpose, { options, by })
    const { version, exposure } = answered
    const name = `${purpose}/${version}`
    const value = { purpose, version, exposed: exposure ?? null, file: options.out ?? null }
    print(terminal, options, value, [exposureText(name, exposure, options.out), ADVICE[purpose]].join('\n'))
    // If a rotation was under way, the version that is now in use was made before the mark and must be replaced, too.
    if (turning.inPhases && options.keyVersion === undefined && (await isSuspect(vault.store, { purpose, version })))
      throw new Stop(
        `The version in use now was made before ${name} was marked, so somebody else may have it, too: run this again, with another file for --out.`,
      )
  })
}

/** Replaces the version, lists the rows that it exposed, and seals or codes them anew if the purpose has that. */
async function answer(
  terminal: Terminal,
  vault: OpenedVault,
  purpose: Purpose,
  acting: Acting,
): Promise<{ version: number; exposure: Exposure | undefined }> {
  const { options, by } = acting
  const begun = await beginCompromise(vault.store, purpose, options.keyVersion, await by(COMPROMISE))
  if ('refused' in begun) throw new Stop(refusalText(purpose, options.keyVersion, begun.refused))
  const { version, isResumed, isInUse, dropped } = begun.done
  const name = `${purpose}/${version}`
  say(terminal, isResumed ? `${name} was marked before; going on.` : `${name} is marked as compromised.`)
  if (dropped !== undefined)
    say(terminal, `${purpose}/${dropped}, which waited to take its place, is dropped: somebody else may have it, too.`)
  let exposure: Exposure | undefined
  const list = async () => {
    exposure ??= await expose(terminal, vault, begun.done, acting)
    begun.done.isListed = true
  }
  if (TURNING[purpose].inPhases) {
    await replaceInPhases(terminal, vault, version, { by, list })
  } else {
    if (isInUse) await turnDataKey(terminal, vault, purpose, await by(ROTATE))
    await list()
    await makeAnew(terminal, vault, purpose, acting)
  }
  await endCompromise(vault.store, begun.done, await by(COMPROMISE))
  return { version, exposure }
}

export interface Acting {
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
  if (!TURNING[purpose].inPhases) await settle(terminal, store, { purpose, version })
  const exposure = await listExposure(store, { purpose, version }, options.out)
  await recordExposure(store, { purpose, version }, exposure, await by(COMPROMISE))
  return exposure
}

/** Waits until no process writes under the former version any more, so that the list holds every row. */
async function settle(
  terminal: Terminal,
  store: OpenedVault['store'],
  { purpose, version }: Pick<Compromise, 'purpose' | 'version'>,
): Promise<void> {
  const current = await dataKeys.findActiveVersion(store, purpose)
  const isSettled = () => dataKeys.isInUseFor(store, purpose, current ?? version, COMPROMISE_TIMES.settleMs)
  if (!(await isSettled())) say(terminal, 'Waiting until no process uses the former key any more, at most 35 s ...')
  while (!(await isSettled())) await pause(COMPROMISE_TIMES.lookMs)
}

/** Seals or codes the exposed rows anew under the key in use, if the purpose has that, and waits until it is done. */
async function makeAnew(
  terminal: Terminal,
  { store, ring }: OpenedVault,
  purpose: Purpose,
  { options, by }: Acting,
): Promise<void> {
  if (purpose === 'grant')
    return say(terminal, regrantedText(await regrant(store, ring, await by(RESEAL), GRANT_LISTS)))
  if (!sealingPurpose(purpose)) return
  // Nothing is left to do if a pass has already proved that no row is under another version.
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
    return `${name} is not in use yet; without --key-version this command drops it, and replaces the version in use by a fresh one.`
  return `${name} was destroyed; only backups hold it and what it sealed.`
}
