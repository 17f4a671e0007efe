// Case (e), the reference of (b): only RSA-2048 decryption, on all cores at once.
import {
  constants,
  createPrivateKey,
  generateKeyPairSync,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
} from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { ProcessorTime } from './single/processor.ts'

const OPERATIONS = 3_000
const OAEP = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' } as const

export interface DecryptRun {
  /** Decryptions, of all cores together. */
  perSecond: number
  /** Of all threads together. */
  rows: number
  /** Per decryption. */
  processor: ProcessorTime
}

export async function runDecrypt(): Promise<DecryptRun> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const sealed = publicEncrypt({ key: publicKey, ...OAEP }, randomBytes(32))
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const cores = availableParallelism()
  const parts = await Promise.all(
    Array.from(
      { length: cores },
      () =>
        new Promise<Part>((resolve, reject) => {
          const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { pem, sealed } })
          worker.once('message', resolve)
          worker.once('error', reject)
        }),
    ),
  )
  const sum = (of: (part: Part) => number) => parts.reduce((total, part) => total + of(part), 0)
  const rows = OPERATIONS * cores
  return { rows, perSecond: sum(part => part.perSecond), processor: { bench: Math.round(sum(part => part.us) / rows) } }
}

/** What one thread did. `us`: its processor time. */
interface Part {
  perSecond: number
  us: number
}

if (!isMainThread && workerData?.pem) {
  const key = createPrivateKey(workerData.pem as string)
  const before = process.threadCpuUsage()
  const began = performance.now()
  for (let n = 0; n < OPERATIONS; n += 1) privateDecrypt({ key, ...OAEP }, workerData.sealed as Buffer)
  const perSecond = (OPERATIONS * 1000) / (performance.now() - began)
  const { user, system } = process.threadCpuUsage(before)
  parentPort?.postMessage({ perSecond, us: user + system } satisfies Part)
}
