// The drill on a restored backup: whether the keys of this host open it. It says which key-encryption keys the backup
// needs, which keys open, and whether a sample of everything that is sealed opens. It changes nothing, and shows no card.
import { Fault } from '../../src/errors.ts'
import { Secret } from '../../src/secret.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Db } from '../../src/store/pool.ts'
import {
  SAMPLED_NAMES,
  type SampledName,
  type SampledRow,
  sample,
  sampledPlace,
  sampleVersion,
} from '../../src/store/sealed-sample.ts'
import { authenticationRow } from '../../src/store/three-ds/authentication-row.ts'
import { contractRow } from '../../src/store/three-ds/three-ds-contracts.ts'
import { count } from '../../src/units.ts'
import type { Keks } from '../../src/vault/kek/provider.ts'
import {
  captureHalfName,
  openPrivateHalves,
  type StoredPrivateHalf,
  signingHalfName,
} from '../../src/vault/private-half.ts'
import { openDrillRing } from '../../src/vault/ring/drill-ring.ts'
import { type KeyLives, keysOf } from '../../src/vault/ring/key-lives.ts'
import type { KeyRing, WrappedKey } from '../../src/vault/ring/key-ring.ts'
import type { KnownLives } from '../../src/vault/ring/known-lives.ts'
import { roleKeyName } from '../../src/vault/ring/shared-keys.ts'
import { type Check, critical, type Verdict, well } from './check.ts'

export interface Drill {
  checks: Check[]
  /** What was sampled, by column and version. */
  sampled: Opened[]
}

type OpenableKeks = Pick<Keks, 'find'>

const SHOWN_MAX = 5
const BRING = 'bring the key-encryption key that is named; a file comes back with `tokenmill key restore`'
const LOST = 'look for an older backup, or for the key that sealed them: these can not be read'
const REPLACE = 'look for a backup that holds it: a new key would not fit what the old one made'

/** `lives`: of the stored row alone. A row that this key-encryption key doesn't prove is a check that fails. */
export async function drill(db: Db, keks: OpenableKeks, lives: KnownLives): Promise<Drill> {
  const found = await dataKeys.findAll(db)
  const known = await lives.read().catch(() => undefined)
  // Without the lives the drill still tries each key, by the state that the table of keys repeats.
  const told = await dataKeys.list(db)
  const stateOf = ({ purpose, version }: (typeof found)[number]) =>
    told.find(key => key.purpose === purpose && key.version === version)?.state ?? 'DESTROYED'
  const named: WrappedKey[] = known ? keysOf(known, found) : found.map(key => ({ ...key, state: stateOf(key) }))
  const stored = named.filter(key => !key.isLost)
  const lost = named
    .filter(key => key.isLost)
    .map(({ purpose, version }) => `${purpose}/${version} (not in this backup)`)
  const { ring, opened, failed, missing } = await openDrillRing(keks, stored)
  const halves = openPrivateHalves(ring)
  const capture = await captureKeys.listPrivate(db)
  const signing = await signingKeys.findAll(db)
  const opens = async (half: StoredPrivateHalf, name: string) => {
    const raw = await halves.open(half, name).catch(() => undefined)
    raw?.fill(0)
    return raw !== undefined
  }
  const captureOpen = await namesOf(capture, captureKeys.captureKeyName, key =>
    opens(key, captureHalfName(key.type, key.alias)),
  )
  const signingOpen = await namesOf(
    signing,
    key => key.kid,
    key => opens(key, signingHalfName(key.kid)),
  )
  const versionsOf = (purpose: string) => stored.filter(key => key.purpose === purpose).map(key => key.version)
  const sampled: Opened[] = []
  for (const name of SAMPLED_NAMES)
    sampled.push(...(await openSample(db, ring, name, versionsOf(sampledPlace(name).purpose))))
  // A destroyed key keeps the name of the key-encryption key that wrapped it, which may be gone.
  const wrapped = stored.filter(key => key.wrapped !== null)
  const needed = wrapped.map(({ kekId }) => kekId)
  const keyName = ({ purpose, version, kekId }: (typeof failed)[number]) => `${purpose}/${version} (${kekId})`
  const checks: Check[] = [
    { name: 'key-encryption keys', ...judgeKeks(needed, keks) },
    { name: 'data keys', ...judge('data key', opened.map(keyName), [...failed.map(keyName), ...lost]) },
    { name: 'lives of keys', ...judgeLives(known) },
    { name: 'active keys', ...judgeMissing(missing) },
    { name: 'capture keys', ...judge('capture key', captureOpen.opened, captureOpen.failed) },
    { name: 'signing keys', ...judge('signing key', signingOpen.opened, signingOpen.failed) },
    ...sampled.map(one => ({ name: one.name, ...judgeSample(one) })),
  ]
  return { checks, sampled }
}

function judgeKeks(needed: readonly string[], keks: OpenableKeks): Verdict {
  const uses = [...Map.groupBy(needed, id => id)].map(([id, all]) => ({
    id,
    wraps: all.length,
    isHere: isHere(keks, id),
  }))
  const says = uses.map(
    ({ id, wraps, isHere }) => `${id} wraps ${count(wraps, 'key')} and is ${isHere ? '' : 'not '}here`,
  )
  const isMissing = uses.some(use => !use.isHere)
  return isMissing ? critical(says.join('; '), BRING) : well(says.join('; '))
}

function isHere(keks: OpenableKeks, id: string): boolean {
  try {
    return keks.find(id).id === id
  } catch {
    return false
  }
}

function judgeLives(lives: KeyLives | undefined): Verdict {
  if (lives) return well(`proved by the key-encryption key, epoch ${lives.epoch}`)
  return critical('the row of the lives of the data keys is missing, or no key here proves it (table key_lives)', BRING)
}

function judge(noun: string, opened: readonly string[], failed: readonly string[]): Verdict {
  if (failed.length === 0) return well(`${count(opened.length, noun)} opened`)
  return critical(`${failed.length} of ${opened.length + failed.length} do not open: ${shown(failed)}`, BRING)
}

function judgeMissing(missing: readonly string[]): Verdict {
  if (missing.length === 0) return well('each purpose has an active key')
  return critical(`no active key of ${missing.join(', ')} in this backup`, REPLACE)
}

function judgeSample({ sampled, failed, names, version }: Opened): Verdict {
  if (failed === 0) return well(`${count(sampled, 'row')} under version ${version} opened`)
  return critical(
    `${failed} of ${count(sampled, 'row')} under version ${version} do not open: ${shown(names, failed)}`,
    LOST,
  )
}

const shown = (names: readonly string[], all = names.length): string =>
  `${names.slice(0, SHOWN_MAX).join(', ')}${all > SHOWN_MAX ? ` and ${all - SHOWN_MAX} more` : ''}`

async function namesOf<T>(keys: readonly T[], nameOf: (key: T) => string, opens: (key: T) => Promise<boolean>) {
  const opened: string[] = []
  const failed: string[] = []
  for (const key of keys) ((await opens(key)) ? opened : failed).push(nameOf(key))
  return { opened, failed }
}

/** What became of one column's rows under one version. */
interface Opened {
  /** The column, as `token.sealed`. */
  name: string
  version: number
  sampled: number
  failed: number
  /** The first rows that didn't open; of cards the ids of their tokens. */
  names: string[]
}

/** Rows of each column, spread over the versions. */
const ROWS_MAX = 1_000
const NAMES_MAX = 100

type Open = (row: SampledRow, ring: KeyRing) => unknown

const OPEN: Record<SampledName, Open> = {
  'token.sealed': (row, ring) => matchCard(ring.open(row.sealed, row.version, row.key, scopeOf(row)), row),
  'scheme_token.card': (row, ring) => ring.open(row.sealed, row.version, row.key, scopeOf(row)),
  'scheme_token.sealed': (row, ring) =>
    ring.openNetworkToken(row.sealed, row.version, { provisionId: row.key, tokenId: factOf(row, 'token_id') }),
  'scheme_token.reference_sealed': (row, ring) =>
    ring.openReference(row.sealed, row.version, {
      provisionId: row.key,
      tokenId: factOf(row, 'token_id'),
      provider: factOf(row, 'provider'),
      reference: factOf(row, 'reference'),
    }),
  'before_image.sealed': (row, ring) => ring.openBeforeImage(row.sealed, row.version, row.key),
  'authentication.sealed': (row, ring) => ring.openThreeDs(row.sealed, row.version, authenticationOf(row)),
  'threeds_contract.key_sealed': (row, ring) => ring.openThreeDs(row.sealed, row.version, contractRow(row.key)),
  'threeds_contract.former_key_sealed': (row, ring) => ring.openThreeDs(row.sealed, row.version, contractRow(row.key)),
  'endpoint.sealed': (row, ring) => ring.openWebhookSecret(row.sealed, row.version, row.key),
  'endpoint.former_sealed': (row, ring) => ring.openWebhookSecret(row.sealed, row.version, row.key),
  'manifest_key.sealed': (row, ring) => ring.openTotalKey(row.sealed, row.version, row.key),
  'role_key.sealed': (row, ring) => ring.openPrivateHalf(row.sealed, row.version, roleKeyName(row.key)),
}

/**
 * Opens a sample of one column, as the code that reads the column does, and drops at once what it opened. `known`: the
 * versions that the purpose has, or had.
 */
async function openSample(db: Db, ring: KeyRing, name: SampledName, known: readonly number[]): Promise<Opened[]> {
  const perVersion = Math.floor(ROWS_MAX / Math.max(1, known.length))
  const rows = await sample(db, name, perVersion)
  for (const version of known)
    if (!rows.some(row => row.version === version)) rows.push(...(await sampleVersion(db, name, version, perVersion)))
  const byVersion = [...Map.groupBy(rows, ({ version }) => version)].sort(([a], [b]) => a - b)
  return byVersion.map(([version, some]) => {
    const failed = some.filter(row => !opensRow(row, ring, OPEN[name]))
    const names = failed.slice(0, NAMES_MAX).map(({ key }) => key)
    return { name, version, sampled: some.length, failed: failed.length, names }
  })
}

function opensRow(row: SampledRow, ring: KeyRing, open: Open): boolean {
  try {
    const plain = open(row, ring)
    if (Buffer.isBuffer(plain)) plain.fill(0)
    if (plain instanceof Secret && Buffer.isBuffer(plain.reveal())) (plain as Secret<Buffer>).reveal().fill(0)
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Throws `Fault('defect')` if the number isn't the one whose ends the row shows. */
function matchCard(pan: Secret, { facts }: SampledRow): void {
  const number = pan.reveal()
  const isSame = number.startsWith(facts['bin'] ?? '') && number.endsWith(facts['last_four'] ?? '')
  if (!/^\d{12,19}$/.test(number) || !isSame) throw new Fault('defect')
}

function factOf({ facts }: SampledRow, name: string): string {
  return facts[name] ?? ''
}

const scopeOf = (row: SampledRow) => factOf(row, 'token_scope')

function authenticationOf(row: SampledRow): string {
  return authenticationRow({
    authenticationId: row.key,
    entityId: factOf(row, 'entity_id'),
    contractId: factOf(row, 'contract_id'),
    clientId: factOf(row, 'client_id'),
  })
}
