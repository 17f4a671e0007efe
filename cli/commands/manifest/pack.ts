// `tokenmill manifest pack BATCH…`: makes a sign-off pack, as JSON and PDF, or checks the counterparty's signature over one
// that was made.
import { dirname, join } from 'node:path'
import { type Credentials, readCredentials } from '../../../producers/client/client-file.ts'
import { signDetached, type VerifyKey } from '../../../producers/detached-signature.ts'
import { readManifest } from '../../../producers/migrate/manifest.ts'
import { readTheirTotal, type TheirTotal } from '../../../producers/pack/comparison.ts'
import {
  type Countersignature,
  checkSameSigner,
  countersign,
  countersignaturePath,
} from '../../../producers/pack/countersignature.ts'
import { leaveOutPath } from '../../../producers/pack/leave-out/leave-out-file.ts'
import { makePack } from '../../../producers/pack/make.ts'
import { type FoundManifest, findManifests } from '../../../producers/pack/manifest-search.ts'
import { type Maker, type Pack, readPack } from '../../../producers/pack/pack.ts'
import { signerFrom } from '../../../producers/pack/packed-batch.ts'
import { computeTotal, type MigrationTotal } from '../../../producers/pack/total.ts'
import { isSigned, keysOfSigner } from '../../../producers/pack/verify/verdict.ts'
import {
  checkPackFree,
  checkSameBatches,
  pdfPath,
  writeCountersigned,
  writePack,
} from '../../../producers/pack/write.ts'
import { FileError } from '../../../producers/rows/file-error.ts'
import { systemClock } from '../../../src/clock.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT } from '../../exit.ts'
import { type Session, withSession } from '../../open/open.ts'
import { openTotal, tellChunks } from '../../process/total.ts'
import { facts, print, type Terminal, userName } from '../../terminal.ts'
import { type KeyOptions, keysOf } from './keys.ts'

interface Options extends JsonOption, KeyOptions {
  migration?: string
  folder: string
  out?: string
  dryRun?: string[]
  decisions?: string
  theirTotal?: string
  theirCount?: number
  /** False: `--no-total`. */
  total: boolean
  signature?: string
  counterparty?: string
}

interface Packing {
  session: Session
  options: Options
  credentials: Credentials
  /** The keys of the clients that may have signed the manifests. */
  keys: readonly VerifyKey[]
  manifests: readonly FoundManifest[]
  /** The path of the pack, which may not exist yet. */
  path: string
}

export function pack(terminal: Terminal, named: string[], options: Options): Promise<void> {
  return withSession(terminal, async session => {
    refuseImpossible(options)
    const client = options.client ?? join(session.config.dataDir, 'dev-client.json')
    const credentials = await readCredentials(client)
    const keys = await keysOf(session, { ...options, client })
    const { migration, folder, signature, counterparty } = options
    const manifests = await findManifests({ named, migration, folder })
    const packing = { session, options, credentials, keys, manifests, path: pathOf(manifests, options) }
    const given = signature !== undefined && counterparty !== undefined ? { signature, counterparty } : undefined
    const made = given ? await sign(packing, given) : { pack: await make(packing) }
    const { value, text } = toldOf(packing.path, made)
    print(terminal, options, value, text)
    if (isSomethingOpen(made.pack)) process.exitCode = EXIT.incomplete
  })
}

function refuseImpossible(options: Options): void {
  const { theirTotal, theirCount, total, signature, counterparty } = options
  if ((signature === undefined) !== (counterparty === undefined))
    throw new FileError(
      'usage',
      'A signature and its key go together.',
      'Give --signature FILE and --counterparty FILE.',
    )
  const beside = (['decisions', 'dryRun', 'theirTotal'] as const).find(name => options[name] !== undefined)
  if (signature !== undefined && beside !== undefined)
    throw new FileError(
      'usage',
      'A pack is signed as it was made, so --signature goes without --decisions, --dry-run and --their-total.',
      'Make the pack with them first; have it signed; then give --signature.',
    )
  if (theirTotal !== undefined && !total)
    throw new FileError('usage', '--their-total is compared with the total of the vault.', 'Leave --no-total out.')
  if ((theirTotal !== undefined && isDigest(theirTotal)) !== (theirCount !== undefined))
    throw new FileError(
      'usage',
      '--their-count goes with a SHA-256 in --their-total.',
      'Give both, or the file that docs/sign-off/total.py printed as --their-total.',
    )
}

const isDigest = (text: string) => /^[0-9a-f]{64}$/i.test(text)

/** Beside the manifests, unless `--out` says otherwise. */
function pathOf(manifests: readonly FoundManifest[], { out, migration }: Options): string {
  if (out !== undefined) return out.endsWith('.json') ? out : `${out}.pack.json`
  const [first] = manifests
  const folder = dirname(first?.path ?? '.')
  if (migration !== undefined) return join(folder, `${migration}.pack.json`)
  if (first && manifests.length === 1) return `${first.path.replace(/\.manifest\.json$|\.json$/, '')}.pack.json`
  throw new FileError('usage', 'A pack of several batches needs a name.', 'Give --migration NAME or --out FILE.')
}

/** The name that was given, or the name that all manifests have. */
function migrationOf({ options, manifests }: Packing): string | undefined {
  const names = new Set(manifests.map(({ manifest }) => manifest.migration))
  return options.migration ?? (names.size === 1 ? [...names][0] : undefined)
}

async function make(packing: Packing): Promise<Pack> {
  const { options, credentials, keys, manifests, path } = packing
  const ownKey = keys[0]
  if (!ownKey) throw new Error('broken law: the client has a key')
  const migration = migrationOf(packing)
  await checkPackFree(path, manifests)
  const dryRuns = await Promise.all(
    (options.dryRun ?? []).map(async one => ({ path: one, ...(await readManifest(one)) })),
  )
  const total = options.total ? await totalOf(packing, migration) : undefined
  const made = await makePack(
    { path, manifests, migration, dryRuns, decisions: options.decisions, theirs: await theirsOf(options, path) },
    { clock: systemClock, keys, signer: signerFrom(ownKey), madeBy: makerOf(credentials), total },
  )
  await writePack(path, made, signWith(credentials))
  return made
}

async function totalOf({ session, manifests }: Packing, migration: string | undefined) {
  if (migration === undefined)
    throw new FileError(
      'usage',
      'The total needs the name of the migration for which its key was made.',
      'Give --migration NAME, or leave the total out with --no-total.',
    )
  const deps = await openTotal(session)
  const clients = new Set(manifests.map(({ manifest }) => manifest.operator?.client_id))
  const clientId = clients.size === 1 ? [...clients][0] : undefined
  const onProgress = tellChunks(session.terminal, systemClock)
  return (batches: readonly string[]): Promise<MigrationTotal> =>
    computeTotal(deps, { migration, batches, clientId, onProgress })
}

async function theirsOf({ theirTotal, theirCount }: Options, packPath: string): Promise<TheirTotal | undefined> {
  if (theirTotal === undefined) return undefined
  if (theirCount !== undefined) return { rows: theirCount, sha256: theirTotal.toLowerCase() }
  return readTheirTotal(theirTotal, packPath)
}

type Made = { pack: Pack; countersignature?: Countersignature }

async function sign(
  { credentials, keys, manifests, path }: Packing,
  given: { signature: string; counterparty: string },
): Promise<Made> {
  const { pack: made, bytes } = await readPack(path)
  checkSameBatches(path, made, manifests)
  if (!(await isSigned(path, bytes, keysOfSigner(made.signer, keys)))) {
    const next = 'Put back the pack as it was written; `tokenmill manifest verify` checks it.'
    throw new FileError('input', `${path} bears no signature by its signer, or --client and --key name another.`, next)
  }
  const ask = { packPath: path, packBytes: bytes, ...given }
  const countersignature = await countersign(ask, { now: systemClock(), checkedBy: makerOf(credentials) })
  await checkSameSigner(path, countersignature)
  await writeCountersigned(path, { pack: made, bytes, countersignature }, signWith(credentials))
  return { pack: made, countersignature }
}

function makerOf({ signingKey }: Credentials): Maker {
  return { client_id: signingKey.clientId, os_user: userName() }
}

function signWith({ signingKey }: Credentials) {
  return (bytes: Buffer) => signDetached(bytes, signingKey)
}

function isSomethingOpen({ exceptions, total }: Pack): boolean {
  return exceptions.open > 0 || total?.comparison?.equal === false
}

function toldOf(path: string, { pack: made, countersignature }: Made): { value: unknown; text: string[] } {
  const { migration, batches, rows, exceptions, total } = made
  const { open, decided } = exceptions
  const equal = total?.comparison?.equal
  const signed = countersignature && {
    record: countersignaturePath(path),
    fingerprint: countersignature.counterparty.fingerprint,
    signed_at: countersignature.signed_at,
  }
  const value = {
    pack: path,
    pdf: pdfPath(path),
    leave_out: leaveOutPath(path),
    migration,
    batches: batches.length,
    rows,
    exceptions: { rows: exceptions.rows, decided, open },
    total: total && { rows: total.vault.rows, sha256: total.vault.sha256, equal },
    countersignature: signed,
  }
  const text = facts({
    pack: path,
    pdf: pdfPath(path),
    'leave out': leaveOutPath(path),
    migration,
    rows: `${rows} in ${batches.length} ${batches.length === 1 ? 'batch' : 'batches'}`,
    exceptions: `${exceptions.rows}: ${decided} decided, ${open} open`,
    total: total ? `${total.vault.rows} ${total.vault.sha256}` : 'none (--no-total)',
    '  of both sides': equal === undefined ? undefined : equal ? 'equal' : 'different',
    'signed by': signed && `${signed.fingerprint}, ${signed.signed_at}`,
  })
  return { value, text }
}
