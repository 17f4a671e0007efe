// `tokenmill manifest verify FILE`: checks a manifest, or a sign-off pack, and the files that it names and that still
// exist.
import type { VerifyKey } from '../../../producers/detached-signature.ts'
import { verifyDetached } from '../../../producers/detached-signature.ts'
import { type CHECKS, verifyManifest } from '../../../producers/migrate/manifest.ts'
import { isPack } from '../../../producers/pack/pack.ts'
import { BATCH_CHECKS } from '../../../producers/pack/verify/batch-checks.ts'
import { PACK_CHECKS, type PackVerification, verifyPack } from '../../../producers/pack/verify/verify.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { withSession } from '../../open/open.ts'
import { print, type Terminal } from '../../terminal.ts'
import { type KeyOptions, keysOf } from './keys.ts'

type Options = JsonOption & KeyOptions

const SAYS: Record<(typeof CHECKS)[number], string> = {
  signature: 'signature of the client',
  rows: 'rows are the sum of the counts',
  results_digest: 'digest of the results file',
  results_counts: 'counts of the results file',
  input_digest: 'digest of the input file',
  rejects_digest: 'digest of the file of rejected rows',
  return_digest: 'digest of the file that goes back',
}

export function verify(terminal: Terminal, file: string, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const keys = await keysOf(session, options)
    const { value, text, holds } = (await isPack(file)) ? await ofPack(file, keys) : await ofManifest(file, keys)
    print(terminal, options, value, text)
    if (!holds) throw new Stop(`${file}: at least one check failed`, EXIT.failure)
  })
}

interface Told {
  value: unknown
  text: string[]
  holds: boolean
}

async function ofManifest(file: string, keys: readonly VerifyKey[]): Promise<Told> {
  const { manifest, checks, holds } = await verifyManifest(file, (bytes, jws) => verifyDetached(bytes, jws, keys))
  const value = { file, batch_id: manifest.batch_id, rows: manifest.rows, counts: manifest.counts, checks, holds }
  return { value, text: linesOf(checks, SAYS), holds }
}

async function ofPack(file: string, keys: readonly VerifyKey[]): Promise<Told> {
  const found = await verifyPack(file, keys)
  const { pack, checks, batches, holds, countersignature } = found
  const { migration, rows, counts, signer } = pack
  const counterparty = countersignature && {
    fingerprint: countersignature.counterparty.fingerprint,
    signed_at: countersignature.signed_at,
  }
  const value = { file, migration, rows, counts, signer, counterparty, checks, batches, holds }
  return { value, text: textOf(found), holds }
}

/** The keys are named, because a person must compare them. */
function textOf({ pack, checks, batches, countersignature }: PackVerification): string[] {
  const keys = [
    `client's key        ${pack.signer.thumbprint}`,
    ...(countersignature ? [`counterparty's key  ${countersignature.counterparty.fingerprint}`] : []),
  ]
  const ofBatches = batches.flatMap(batch => [`batch ${batch.batch_id}`, ...linesOf(batch.checks, BATCH_CHECKS)])
  return [...linesOf(checks, PACK_CHECKS), ...ofBatches, ...keys]
}

/** One line for each check, in the order of `says`. */
function linesOf<Name extends string>(checks: Record<Name, string>, says: Record<Name, string>): string[] {
  return Object.keys(says).map(name => `${checks[name as Name].padEnd(6)}  ${says[name as Name]}`)
}
