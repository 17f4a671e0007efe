// `tokenmill key compromise PURPOSE`, if somebody else may have a data key: replaces the key, lists the rows that it
// exposed, seals or codes them anew if the purpose has that, and says what is left to do. If the command is killed and
// run again, it continues where it was.
import { randomBytes } from 'node:crypto'
import { link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { syncDirectory } from '../../../producers/rows/atomic-file.ts'
import {
  beginCompromise,
  COMPROMISE,
  type Compromise,
  type Exposure,
  endCompromise,
  isSuspect,
  recordExposure,
} from '../../../src/acts/key/compromise.ts'
import { ROTATE } from '../../../src/acts/key/key-rotation.ts'
import { regrant } from '../../../src/acts/key/regrant.ts'
import { RESEAL } from '../../../src/acts/key/reseal.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as processes from '../../../src/store/access/processes.ts'
import type { Db } from '../../../src/store/pool.ts'
import { exposedKeys, exposedPlaces } from '../../../src/store/reseal/exposed-rows.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import { sealingPurpose } from '../../../src/store/reseal/sealed-columns.ts'
import { AFRESH_MS } from '../../../src/vault/ring/held-keys.ts'
import type { Purpose } from '../../../src/vault/ring/key-ring.ts'
import { TURNING } from '../../../src/vault/ring/turning.ts'
import type { JsonOption } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { EXIT, Stop } from '../../exit.ts'
import { GRANT_LISTS } from '../../open/grant-lists.ts'
import { type OpenedVault, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { replaceInPhases } from './compromise-fingerprint.ts'
import { regrantedText } from './regranted.ts'
import { begin as beginReseal, follow, lineOf } from './reseal.ts'
import { readPurpose } from './rotate-data-key.ts'
import { namesOf, turnDataKey } from './turn-data-key.ts'

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
    print(terminal, options, value, [exposureText(name, exposure, options.out), ADVICE[purpose]])
    // If a rotation was under way, the version that is now in use was made before the mark and must be replaced, too.
    if (turning.inPhases && options.keyVersion === undefined && (await isSuspect(vault, { purpose, version })))
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
  const begun = await beginCompromise(vault, purpose, options.keyVersion, await by(COMPROMISE))
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
    // No gateway is waited for: its host may be where the key was stolen.
    if (isInUse) await turnDataKey(terminal, vault, { purpose, without: 'all' }, await by(ROTATE))
    await list()
    await makeAnew(terminal, vault, purpose, acting)
  }
  await endCompromise(vault, begun.done, await by(COMPROMISE))
  await untilRefused(terminal, vault)
  return { version, exposure }
}

/** Waits until every live process that opens the vault goes by the end of the compromise, and says for which it waits. */
async function untilRefused(terminal: Terminal, { store, lives }: OpenedVault): Promise<void> {
  const { epoch } = await lives.read()
  for (let told = ''; ; await pause(COMPROMISE_TIMES.lookMs)) {
    const behind = await processes.listBehind(store, epoch, BEAT.deadMs)
    if (behind.length === 0) return
    const line = `Waiting for processes that may still believe the former key: ${namesOf(behind)}.`
    if (line !== told) say(terminal, line)
    told = line
  }
}

export interface Acting {
  options: Options
  by: (action: string) => ReturnType<typeof byOf>
}

/** Lists what the version exposed, before anything is sealed anew. Undefined: an earlier run has listed it. */
async function expose(
  terminal: Terminal,
  vault: OpenedVault,
  compromised: Compromise,
  { options, by }: Acting,
): Promise<Exposure | undefined> {
  const { store } = vault
  const { purpose, version, isListed } = compromised
  if (isListed) return undefined
  if (!TURNING[purpose].inPhases) await settle(terminal, store, { purpose, version })
  const exposure = await listExposure(store, { purpose, version }, options.out)
  await recordExposure(vault, { purpose, version }, exposure, await by(COMPROMISE))
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

/** What is left for people: what a thief of the key can do, and what ends that. */
const ADVICE: Record<Purpose, string> = {
  seal: 'Whoever also has these rows, from the database or a backup, read these card numbers. Tell your acquirer and the card networks; the file of --out has the tokens.',
  'before-image':
    'Whoever also has these rows read the card numbers of changes of the last day. They go by themselves within 24 h.',
  'network-token':
    'Whoever also has these rows read the numbers of these scheme tokens. Ask the network to replace them.',
  'three-ds':
    'Whoever also has these rows read authentication values, challenges, and the keys of contracts. Have the keys of 3-D Secure contracts replaced (`threeds-contract`).',
  webhook:
    'Whoever also has these rows can sign webhooks. Replace the secret of each endpoint (`events`); sealing them anew is not enough.',
  manifest:
    'Whoever also has these rows can compute totals of these migrations. Make the totals of open migrations anew.',
  'private-half':
    'Whoever also has these rows has the private halves of capture keys, signing keys, and the secrets of gateways. Run `tokenmill capture-key rotate ALIAS` for each alias, and retire the former keys once every page has the new one; run `tokenmill key rotate signing --now`; read about a compromise of a signing key in docs/keys.md; run `tokenmill key forget gateway KID` for each gateway, then `tokenmill schema upgrade`.',
  audit:
    'Whoever also owns the database can make rows of the audit that verify. Rows that left for AUDIT_URL before stand; compare by `tokenmill audit verify`.',
  digest:
    'Whoever also has these rows can test guesses of the requests that they stand for. The key lives as long as they do.',
  'api-key':
    'Whoever also owns the database can give any client an API key of their own. Run `tokenmill client api-key rotate NAME` for each client that is listed; `tokenmill key list` names those that are left. Until then, and until `tokenmill key destroy api-key VERSION` has destroyed the exposed version, API keys under it are believed: look for clients that came under it later. The key intake/1 is derived from api-key/1: run `tokenmill key rotate intake`, if intake/1 is in use.',
  intake:
    'Whoever also has these rows can test guesses of the bodies that they stand for. The key lives as long as they do.',
  owner:
    'Whoever also has these rows can test guesses of the ids that they stand for. The key lives as long as they do.',
  grant:
    'Whoever also owns the database could make clients, keys, capture keys, scopes and signing keys that tokenmill believes, and this command has coded these rows anew, too. Compare the file of --out with what you know (`client list`, `scope list`, `capture-key list`) and revoke what is not yours. From now on nothing that is coded under the exposed version is believed, and a confirmation that waited has to be asked for again.',
  receipt:
    'Whoever also owns the database could change what was decided about a job, and insert results and events, so that they are told under the signature of this installation. No row is coded anew, because nobody can tell the right ones from theirs: rows under the exposed version are believed until they are erased (TOKENMILL_RECEIPT_DAYS; 7 days for results and events). Compare what clients were told since the theft with their own records.',
  analytics:
    'Whoever has the key and an analytics token can find the card number by trying them all. New values are given from now on; a stored value changes when its card is next presented. Tell everybody who keeps values that they change.',
  fingerprint:
    'Whoever also has fingerprints can find the card numbers by trying them all. No fingerprint under the exposed version is left of a token that keeps its number. Of the others they stay until their cards are presented, or until `tokenmill key retire fingerprint VERSION --forget`. Values of dry runs are erased after 24 hours. Keep backups from the thief, and restrict logins.',
}

/**
 * Counts the rows, and lists them in the file if there is one: one line for each row, `column,key`. The file is written
 * whole or not at all. It holds no secret of the vault, but says which cards were exposed.
 */
async function listExposure(
  db: Db,
  { purpose, version }: { purpose: string; version: number },
  path: string | undefined,
): Promise<Exposure> {
  if (path === undefined) return count(db, { purpose, version }, async () => {})
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    let exposure: Exposure
    try {
      // `writeFile` goes on where it was until all is written; `write` may write a part, as where the disk is full.
      await file.writeFile('column,key\n')
      exposure = await count(db, { purpose, version }, async (column, keys) => {
        await file.writeFile(keys.map(key => `${column},${key}\n`).join(''))
      })
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path)
    // The rows are recorded as listed next, for good: by then the file's name must survive a power failure.
    await syncDirectory(dirname(path))
    return exposure
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new Stop(`${path} exists already; name another file with --out, and run this again.`)
    if (syscall !== undefined)
      throw new Stop(
        `${path} can't be written (${code}); name another file with --out, and run this again.`,
        EXIT.failure,
      )
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function count(
  db: Db,
  { purpose, version }: { purpose: string; version: number },
  take: (column: string, keys: readonly string[]) => Promise<void>,
): Promise<Exposure> {
  const exposure: Record<string, number> = {}
  for (const place of exposedPlaces(purpose)) {
    let rows = 0
    for await (const keys of exposedKeys(db, place, version)) {
      rows += keys.length
      await take(place.column, keys)
    }
    if (rows > 0) exposure[place.column] = rows
  }
  return exposure
}
