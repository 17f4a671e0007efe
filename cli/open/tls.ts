// Reads the certificate of an HTTP role, and checks it before anything listens.
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Tls } from '../../producers/http/listen.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import { TLS_POLICY } from '../../src/tls.ts'

/** Reads and checks the files. Throws `ConfigError` if they are missing or aren't a certificate chain and its key. */
export async function readTls(files: Config['tls']): Promise<Tls | undefined> {
  if (!files) return undefined
  const read = (setting: string, path: string) =>
    readFile(path).catch((error: NodeJS.ErrnoException) => {
      throw new ConfigError(`${setting}: ${path} can't be read (${error.code})`)
    })
  const cert = await read('TOKENMILL_TLS_CERT', files.certFile)
  const key = await read('TOKENMILL_TLS_KEY', files.keyFile)
  try {
    createSecureContext({ cert, key, ...TLS_POLICY })
  } catch {
    // OpenSSL's message may quote the key, so it isn't used.
    throw new ConfigError(
      'TOKENMILL_TLS_CERT, TOKENMILL_TLS_KEY: must be a certificate chain and its private key, both PEM',
    )
  }
  return { cert, key }
}
