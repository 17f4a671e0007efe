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

const OPERATIONS = 3_000
const OAEP = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' } as const

/** Returns decryptions per second of all cores together. */
export async function runDecrypt(): Promise<{ perSecond: number }> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const sealed = publicEncrypt({ key: publicKey, ...OAEP }, randomBytes(32))
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const cores = availableParallelism()
  const rates = await Promise.all(
    Array.from(
      { length: cores },
      () =>
        new Promise<number>((resolve, reject) => {
          const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { pem, sealed } })
          worker.once('message', resolve)
          worker.once('error', reject)
        }),
    ),
  )
  return { perSecond: rates.reduce((sum, rate) => sum + rate, 0) }
}

if (!isMainThread && workerData?.pem) {
  const key = createPrivateKey(workerData.pem as string)
  const began = performance.now()
  for (let n = 0; n < OPERATIONS; n += 1) privateDecrypt({ key, ...OAEP }, workerData.sealed as Buffer)
  parentPort?.postMessage((OPERATIONS * 1000) / (performance.now() - began))
}
