// Writes a pack and its PDF, each with the client's signature, and the record of the counterparty's signature. A pack that
// the counterparty signed is never replaced.
import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { type Sign, signaturePath } from '../migrate/manifest.ts'
import { cannotWrite, writeAtomically } from '../rows/atomic-file.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import {
  type Countersignature,
  countersignaturePath,
  countersignatureText,
  readCountersignature,
} from './countersignature.ts'
import { type Pack, packText, readPack } from './pack.ts'

const loadPaper = () => import('./paper/paper.ts')

export function pdfPath(pack: string): string {
  return `${pack.replace(/\.json$/, '')}.pdf`
}

export async function writePack(path: string, pack: Pack, sign: Sign): Promise<void> {
  await checkPackFree(path, pack.batches)
  const bytes = Buffer.from(packText(pack))
  await removePaper(path)
  await writeSigned(path, bytes, sign)
  await writePaper(path, { pack, bytes, countersignature: undefined }, sign)
}

/** Writes the record beside the pack, and the PDF anew with the signature. */
export async function writeCountersigned(
  path: string,
  signed: { pack: Pack; bytes: Buffer; countersignature: Countersignature },
  sign: Sign,
): Promise<void> {
  await removePaper(path)
  await writeSigned(countersignaturePath(path), Buffer.from(countersignatureText(signed.countersignature)), sign)
  await writePaper(path, signed, sign)
}

interface OfBatch {
  manifest: { batch_id: string }
}

/**
 * Refuses, before anything is computed, to replace a pack of other batches or one that was countersigned. Also fails
 * before that where the package that draws PDF is missing.
 */
export async function checkPackFree(path: string, batches: readonly OfBatch[]): Promise<void> {
  await loadPaper()
  if (await readCountersignature(path)) {
    const next = 'It stays as it was signed: give a further pack another name with --out FILE.'
    throw new FileError('usage', `${path} was signed by the counterparty.`, next)
  }
  const isThere = await readFile(path).then(
    () => true,
    error => codeOf(error) !== 'ENOENT',
  )
  if (!isThere) return
  const found = await readPack(path)
  checkSameBatches(path, found.pack, batches)
}

export function checkSameBatches(path: string, pack: Pack, batches: readonly OfBatch[]): void {
  const ids = (of: readonly OfBatch[]) => of.map(({ manifest }) => manifest.batch_id).join()
  if (ids(pack.batches) === ids(batches)) return
  const next = 'Name the batches of that pack, or give another name with --out FILE.'
  throw new FileError('usage', `${path} is the pack of other batches.`, next)
}

/** Removes the PDF before the pack changes: after a crash there is then no PDF of a former pack that somebody could sign. */
async function removePaper(path: string): Promise<void> {
  const pdf = pdfPath(path)
  for (const name of [pdf, signaturePath(pdf)])
    await rm(name, { force: true }).catch(error => {
      throw cannotWrite(name, error)
    })
}

async function writePaper(
  path: string,
  of: { pack: Pack; bytes: Buffer; countersignature: Countersignature | undefined },
  sign: Sign,
): Promise<void> {
  const { paperOf } = await loadPaper()
  const sha256 = createHash('sha256').update(of.bytes).digest('hex')
  await writeSigned(pdfPath(path), await paperOf({ ...of, sha256 }), sign)
}

/** Writes the signature first, so that the file is never there without it. */
async function writeSigned(path: string, bytes: Buffer, sign: Sign): Promise<void> {
  await writeAtomically(signaturePath(path), `${await sign(bytes)}\n`)
  await writeAtomically(path, bytes)
}
